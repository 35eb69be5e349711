"""From texts to word pieces under every setting of a tokenizer, by hand-computed pieces."""

import dataclasses
import json
import os
import pathlib
import sys

import pytest
import tensorflow as tf

from adapter_bert_tf.base.tokenizer_settings import AddedToken, SpecialTokens, TokenizerSettings
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.data.tokenization import TextEncoder
from tests import processes

LANGUAGES = pathlib.Path(__file__).parent.parent / "golden" / "languages.json"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (
    "ich möchte mochte sål sal og café cafe İ i Möchte title "
    "a ##a b ##b 中 文 ##文 привет ##привет ##вет 😀 ##😀 ไทย ##ไทย [ ] cls mask E1 covid , ."
).split()
MARKS = ("[E1]", "Covid", "new york")


def encoder(words=WORDS, special=SPECIAL, length=64, **settings):
    values = TokenizerSettings(**settings)
    return TextEncoder(Vocabulary("vocab.txt", (*special, *words), values), length)


def pieces(encoder, text):
    vocabulary = (*SPECIAL, *WORDS, *MARKS)
    return " ".join(vocabulary[i] for i in encoder.segments(tf.constant([text]))[0].to_list()[0])


KEPT = {"strip_accents": False}
CASED = {"lower_case": False, "strip_accents": False}
SETTINGS = [
    ({}, "Ich MÖCHTE Sål og", "ich mochte sal og"),
    (KEPT, "Ich MÖCHTE Sål og", "ich möchte sål og"),
    (CASED, "Möchte café", "Möchte café"),
    ({"lower_case": False}, "café sål", "cafe sal"),
    ({}, "a中文b", "a 中 文 b"),
    ({"split_chinese": False}, "a 中文 b", "a 中 ##文 b"),
    ({}, "[CLS] [MASK]", "[ cls ] [ mask ]"),  # Special tokens in a text are text.
    ({"longest_word": 3}, "aaa aaaa", "a ##a ##a [UNK]"),
    ({}, "TITLE İ", "title i"),
    (KEPT, "TITLE", "title"),
]


@pytest.mark.parametrize(("settings", "text", "expected"), SETTINGS)
def test_settings(settings, text, expected):
    assert pieces(encoder(**settings), text) == expected


# All white space of Unicode, and what surrounds it in the table: whether it separates words, or
# vanishes. Both tokenizers of transformers do the same.
SPACES = [*"\t\n\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000", *map(chr, range(0x2000, 0x200B))]
VANISH = [
    *map(chr, (*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0xAD)),
    *"\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2064\ufeff\ufffd\ue000\U000f0000",
]


@pytest.mark.parametrize("lower_case", [True, False])
def test_white_space_and_controls(lower_case):
    """Separators of lines and paragraphs too: `hotel\\u2028clean` was one unknown word."""
    texts = [f"a{c}b" for c in (*SPACES, *VANISH)]
    ids = encoder(lower_case=lower_case).segments(tf.constant(texts))[0].to_list()
    a, b, inside = (len(SPECIAL) + WORDS.index(word) for word in ("a", "b", "##b"))
    assert ids == [[a, b]] * len(SPACES) + [[a, inside]] * len(VANISH)


# A word may have 100 characters, whatever their bytes: 2 of Cyrillic, 3 of Thai, 4 of emoji.
LONG = [
    ("привет" * 10, "привет" + 9 * " ##привет"),
    ("привет" * 16 + "вет", "привет" + 15 * " ##привет" + " ##вет"),
    ("привет" * 17, "[UNK]"),
    ("ไทย" * 33, "ไทย" + 32 * " ##ไทย"),
    ("ไทย" * 34, "[UNK]"),
    ("😀" * 100, "😀" + 99 * " ##😀"),
    ("😀" * 101 + " a", "[UNK] a"),
    ("a" * 100, "a" + 99 * " ##a"),
    ("a" * 101, "[UNK]"),
]


@pytest.mark.parametrize(("text", "expected"), LONG)
def test_a_word_has_at_most_100_characters(text, expected):
    made = encoder(length=128)
    assert pieces(made, text) == expected
    ids, starts, ends = (part.to_list()[0] for part in made.align(tf.constant([f" {text}."])))
    assert len(ids) == len(expected.split()) + 1
    assert starts[0] == 1 and ends[-2:] == [len(text) + 1, len(text) + 2]


def test_a_saved_encoder_counts_characters(tmp_path):
    module = tf.Module()
    module.encoder = encoder(length=16, **KEPT)
    module.ids = tf.function(
        lambda texts: module.encoder(texts)[0].to_tensor(),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    texts = tf.constant(["MÖCHTE " + "привет" * 10, "😀" * 101])
    expected = module.ids(texts).numpy().tolist()
    assert len(expected[0]) == 13 and expected[1][1] == SPECIAL.index("[UNK]")
    tf.saved_model.save(module, str(tmp_path), module.ids)
    assert tf.saved_model.load(str(tmp_path)).ids(texts).numpy().tolist() == expected


def test_sentences_of_many_languages(minilm):
    """Ids of `BertTokenizerFast`; see benchmarks/parity_figures.py."""
    rows = json.loads(LANGUAGES.read_text(encoding="utf-8"))
    made = TextEncoder(minilm.vocabulary, 512)
    ids, _ = made(tf.constant([row["text"] for row in rows]))
    assert ids.to_list() == [row["ids"] for row in rows]


def test_lines_of_white_space_are_pieces():
    """Google's Chinese vocabulary has such lines; they keep the ids of the pieces after them."""
    made = encoder(words=["\u2028", "\u3000", "a"])
    assert made.segments(tf.constant(["a \u3000 a"]))[0].to_list() == [[7, 7]]


def test_special_tokens_of_other_names():
    names = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    values = TokenizerSettings(special=SpecialTokens(*names))
    made = TextEncoder(Vocabulary("vocab.txt", ("a", *names), values), 8)
    ids, _ = made(tf.constant(["a zebra"]))
    assert ids.to_list() == [[3, 0, 2, 4]]
    assert made.unknown_share(ids) == pytest.approx(0.25)


ADDED = tuple(
    AddedToken(content, len(SPECIAL) + len(WORDS) + i, normalized)
    for i, (content, normalized) in enumerate(zip(MARKS, (False, True, True), strict=True))
)
WITH_ADDED = [
    ("a [E1]covid[E1] b", "a [E1] Covid [E1] b"),
    ("aCOVIDb", "a Covid b"),  # Found in normalized texts, inside words too.
    ("[e1]", "[ [UNK] ]"),  # Found in texts as they are.
    ("New York, New  York", "new york , [UNK] [UNK]"),
    ("cov\u200bid [E\u200b1]", "Covid [ [UNK] ]"),
    ("\ue000covid", "Covid"),
    ("a\0 b[E1]\0 b", "a b [E1] b"),
]


@pytest.mark.parametrize(("text", "expected"), WITH_ADDED)
def test_added_tokens_are_never_split(text, expected):
    made = encoder(words=(*WORDS, *MARKS), added=ADDED)
    assert pieces(made, text) == expected
    ids, starts, ends = (part.to_list() for part in made.align(tf.constant([text])))
    assert ids == made.segments(tf.constant([text]))[0].to_list()
    for i, start, end in zip(ids[0], starts[0], ends[0], strict=True):
        piece = (*SPECIAL, *WORDS, *MARKS)[i]
        assert piece == "[UNK]" or text[start:end].replace("\u200b", "").lower() == piece.lower()


def test_settings_are_part_of_a_fingerprint_where_they_differ():
    assert TokenizerSettings().differences() == {}
    assert TokenizerSettings(longest_text=128).differences() == {}
    assert TokenizerSettings(lower_case=False, strip_accents=False).differences() == {}
    changed = {
        "strip_accents": False,
        "split_chinese": False,
        "longest_word": 50,
        "special": SpecialTokens(start="<s>"),
        "added": ADDED,
    }
    names = {"added": "added_sha256"}
    for name, value in changed.items():
        differences = dataclasses.replace(TokenizerSettings(), **{name: value}).differences()
        assert list(differences) == [names.get(name, name)]


def test_lower_case_does_not_depend_on_the_locale(tmp_path):
    """A Turkish locale mapped TITLE to a word with dotless i, which English bases do not know."""
    script = tmp_path / "script.py"
    script.write_text(
        "import tensorflow as tf\n"
        "from adapter_bert_tf.base.tokenizer_settings import TokenizerSettings\n"
        "from adapter_bert_tf.data.tokenization.words import normalize\n"
        "texts = tf.constant(['TITLE \\u0130', 'J\\u0300 \\u012e\\u0300 \\u00cc'])\n"
        "for kept in (True, False):\n"
        "    lower = normalize(texts, TokenizerSettings(strip_accents=not kept)).numpy()\n"
        "    print(*(ascii(text.decode()) for text in lower))\n"
    )
    printed = [
        processes.run([sys.executable, str(script)], env=os.environ | {"LC_ALL": name}).stdout
        for name in ("C.UTF-8", "tr_TR.UTF-8", "lt_LT.UTF-8")
    ]
    assert printed[0] == printed[1] == printed[2]
    assert "'title i\\u0307'" in printed[0] and "'title i'" in printed[0]
