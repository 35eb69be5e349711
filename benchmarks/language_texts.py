"""Two artificial languages: English news, and the same texts in other letters.

Language B has the texts of A with the Georgian letter for each Latin one, so each word and each
word piece of A has exactly one translation, and B's labels are A's. Digits and signs are the same
in both, as in many pairs of languages.
"""

import collections
import csv
import gzip
import json
import pathlib
import re
import unicodedata

LATIN = "abcdefghijklmnopqrstuvwxyz"
CIPHER = str.maketrans(LATIN, "".join(chr(0x10D0 + number) for number in range(len(LATIN))))
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES, HIDDEN, LENGTH = 2000, 64, 16
# Small, because a base with few weights must share them between the languages (Dufter and Schütze
# 2020, arXiv 2005.00396). Its sequences are short, because their pieces are close to each other: in
# those of 64 it learned no more than the frequency of pieces in 2,900 steps of 4,096 pieces; in
# those of 16 it learns more after 2,300 steps of 2,048.
SIZES = {
    "hidden_size": HIDDEN,
    "intermediate_size": 4 * HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": LENGTH,
    "type_vocab_size": 2,
    "initializer_range": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def translate(text):
    """Returns a text or a word piece of A in B."""
    return text.translate(CIPHER)


LANGUAGES = {"a": str, "b": translate}


def write(data_dir, folder):
    """Writes texts, tables, vocabulary and configuration of the base.

    Args:
      data_dir: holds `bbc_news` and `news_aggregator`.
      folder: gets `vocab.txt`, `config.json`, and for each language `NAME.txt` and
        `NAME/{train,dev}.tsv`.
    """
    data_dir, folder = pathlib.Path(data_dir), pathlib.Path(folder)
    tables = {
        split: _headlines(data_dir / "news_aggregator" / f"{name}.tsv")
        for split, name in (("train", "train"), ("dev", "valid"))
    }
    texts = [*_articles(data_dir / "bbc_news" / "bbc_news.tsv.gz")]
    texts += [text for text, _ in tables["train"]]
    pieces = vocabulary(texts)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    (folder / "config.json").write_text(json.dumps(SIZES | {"vocab_size": len(pieces)}))
    for name, spell in LANGUAGES.items():
        (folder / f"{name}.txt").write_text("".join(f"{spell(text)}\n" for text in texts))
        (folder / name).mkdir(exist_ok=True)
        for split, rows in tables.items():
            lines = "".join(f"{spell(text)}\t{label}\n" for text, label in rows)
            (folder / name / f"{split}.tsv").write_text(f"text\tlabel\n{lines}")


def _articles(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        yield from (_plain(text) for text, *_ in rows)


def _headlines(path):
    """Reads pairs of text and label."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return [(_plain(text), label) for text, label in rows]


def _plain(text):
    """A text in lower case, without accents, in one line."""
    text = text.lower().replace("\\n", " ")  # BBC's line breaks are written as two characters.
    decomposed = unicodedata.normalize("NFD", " ".join(text.split()))
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def vocabulary(texts):
    """Special pieces, signs, the pieces of A, and their translations in the same order."""
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    counts = collections.Counter(word for text in texts for word in re.findall("[a-z]+", text))
    by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    learned = learner.learn(by_count, PIECES, SPECIAL, include_joiner_token=True)
    pieces = [piece for piece in learned if piece not in SPECIAL]
    signs = {c for text in texts for c in text if not c.isspace() and c not in LATIN}
    return [*SPECIAL, *sorted(signs), *pieces, *map(translate, pieces)]
