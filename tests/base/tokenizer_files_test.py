"""Which tokenizer the files of a folder describe, and which ones are refused by name."""

import json
import pathlib
import shutil

import pytest

from adapter_bert_tf.base import load_base
from adapter_bert_tf.base.tokenizer_settings import AddedToken, SpecialTokens
from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.store.base_match import check_base
from tests import support
from tests.refusals import raises_code
from tests.support import VOCABULARY


def tokenizer_json(pieces=VOCABULARY, added=(), **normalizer):
    """What `BertTokenizer` of transformers 5 writes, without its post-processor."""
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": c, "single_word": False, "normalized": False, "special": True}
            for i, c in added
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        }
        | normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: i for i, piece in enumerate(pieces)},
        },
    }


def write(folder, **files):
    """Writes vocab.txt, unless there is a tokenizer.json alone, and the JSON files by name."""
    if "vocab" in files or "tokenizer" not in files:
        lines = files.pop("vocab", VOCABULARY)
        (folder / "vocab.txt").write_text("\n".join(lines) + "\n", "utf-8")
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values), "utf-8")
    names = [name for name in ("vocab.txt", "tokenizer.json") if (folder / name).exists()]
    return str(folder / names[0])


DIFFERENCES = [
    ({"tokenizer_config": {"do_lower_case": True, "strip_accents": False}}, "strip_accents"),
    ({"tokenizer_config": {"do_lower_case": False, "strip_accents": True}}, "strip_accents"),
    ({"tokenizer_config": {"tokenize_chinese_chars": False}}, "split_chinese"),
    ({"tokenizer": tokenizer_json(strip_accents=False)}, "strip_accents"),
    ({"tokenizer": tokenizer_json(handle_chinese_chars=False)}, "split_chinese"),
    ({"vocab": VOCABULARY, "tokenizer": tokenizer_json(strip_accents=False)}, "strip_accents"),
    ({"added_tokens": {"[E1]": len(VOCABULARY)}}, "added_sha256"),
    ({"tokenizer": tokenizer_json(added=[(len(VOCABULARY), "[E1]")])}, "added_sha256"),
    (
        {
            "tokenizer": tokenizer_json(strip_accents=False),
            "tokenizer_config": {"strip_accents": True},
        },
        "",
    ),
    ({"tokenizer": tokenizer_json()}, ""),
    ({"tokenizer_config": {"tokenizer_class": "BertTokenizerFast", "never_split": None}}, ""),
    ({"tokenizer_config": {"tokenizer_class": "DistilBertTokenizer"}}, ""),
    ({"tokenizer_config": {"model_max_length": 128}}, ""),
]


@pytest.mark.parametrize(("files", "expected"), DIFFERENCES)
def test_settings_of_the_files(files, expected, tmp_path):
    vocabulary = read_vocabulary(write(tmp_path, **files))
    assert " ".join(vocabulary.tokenizer.differences()) == expected


def test_lower_case_of_a_tokenizer_json(tmp_path):
    path = write(tmp_path, tokenizer=tokenizer_json(lowercase=False))
    assert not read_vocabulary(path).lower_case
    with raises_code("conflict", "do_lower_case=True", "tokenizer.json"):
        read_vocabulary(path, do_lower_case=True)


def test_a_tokenizer_json_has_the_pieces_of_vocab_txt(tmp_path):
    """In the order of their ids, whatever the order in the file."""
    tokenizer = tokenizer_json()
    tokenizer["model"]["vocab"] = dict(reversed(tokenizer["model"]["vocab"].items()))
    in_json = read_vocabulary(write(tmp_path, tokenizer=tokenizer))
    assert in_json.path.endswith("tokenizer.json")
    in_text = read_vocabulary(write(tmp_path, vocab=VOCABULARY))
    assert in_json.pieces == in_text.pieces == tuple(VOCABULARY)
    assert in_json.sha256 == in_text.sha256


def test_a_folder_of_transformers_5(tmp_path):
    """It has no vocab.txt, and is the same base as the folder of transformers 4."""
    support.write_hugging_face(tmp_path / "four")
    shutil.copytree(tmp_path / "four", tmp_path / "five")
    (tmp_path / "five" / "vocab.txt").unlink()
    write(tmp_path / "five", tokenizer=tokenizer_json())
    four, five = (load_base(str(tmp_path / name)) for name in ("four", "five"))
    assert four.fingerprint() == five.fingerprint()


def test_names_and_lengths(tmp_path):
    names = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    keys = ["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"]
    config = dict(zip(keys, [{"content": names[0]}, *names[1:]], strict=True))
    path = write(
        tmp_path,
        vocab=[*names, "the"],
        tokenizer_config={"model_max_length": 128},
        special_tokens_map=config,
    )
    settings = read_vocabulary(path).tokenizer
    assert settings.special == SpecialTokens(*names) and settings.longest_text == 128
    with raises_code("damaged", "vocab.txt", "<s>"):
        read_vocabulary(write(tmp_path, vocab=[*names[:2], *names[3:]]))


def test_added_tokens_are_pieces_with_their_ids(tmp_path):
    """Those of tokenizer_config.json win; special tokens in a text stay text."""
    size = len(VOCABULARY)
    decoder = {
        str(size + 1): {"content": "Covid", "normalized": True},
        str(size): {"content": "[E1]", "normalized": False},
        "2": {"content": "[CLS]", "normalized": False},
        "6": {"content": VOCABULARY[6], "normalized": False},
    }
    vocabulary = read_vocabulary(
        write(tmp_path, tokenizer_config={"added_tokens_decoder": decoder}, added_tokens={"x": 9})
    )
    assert vocabulary.pieces == (*VOCABULARY, "[E1]", "Covid")
    assert vocabulary.tokenizer.added == (
        AddedToken(VOCABULARY[6], 6, False),
        AddedToken("[E1]", size, False),
        AddedToken("Covid", size + 1, True),
    )


@pytest.mark.parametrize("name", ["special_tokens_map", "tokenizer_config"])
def test_special_tokens_of_old_folders(name, tmp_path):
    """They are found in texts as they are, also where they are pieces of vocab.txt."""
    added = {"[E1]": len(VOCABULARY), "covid": len(VOCABULARY) + 1}
    extra = ["[E1]", {"content": VOCABULARY[6]}, "[CLS]", "absent"]
    files = {name: {"additional_special_tokens": extra}}
    vocabulary = read_vocabulary(write(tmp_path, added_tokens=added, **files))
    assert vocabulary.tokenizer.added == (
        AddedToken(VOCABULARY[6], 6, False),
        AddedToken("[E1]", len(VOCABULARY), False),
        AddedToken("covid", len(VOCABULARY) + 1, True),
    )


def with_part(name, part):
    return {"tokenizer": tokenizer_json() | {name: part}}


SIZE = len(VOCABULARY)
REFUSED = [
    ({"tokenizer_config": {"tokenizer_class": "BertJapaneseTokenizer"}}, "BertJapaneseTokenizer"),
    ({"config": {"tokenizer_class": "BertJapaneseTokenizer"}}, "BertJapaneseTokenizer"),
    ({"tokenizer_config": {"tokenizer_class": "BertweetTokenizer"}}, "BertweetTokenizer"),
    ({"tokenizer_config": {"word_tokenizer_type": "mecab"}}, "word_tokenizer_type"),
    ({"tokenizer_config": {"subword_tokenizer_type": "character"}}, "subword_tokenizer_type"),
    ({"tokenizer_config": {"do_basic_tokenize": False}}, "do_basic_tokenize"),
    ({"tokenizer_config": {"never_split": ["the"]}}, "never_split"),
    ({"tokenizer_config": {"auto_map": {"AutoTokenizer": ["x.Y", None]}}}, "auto_map"),
    (with_part("model", {"type": "Unigram", "vocab": []}), "Unigram"),
    (with_part("normalizer", {"type": "Lowercase"}), "Lowercase"),
    (with_part("normalizer", None), "normalizer"),
    (with_part("pre_tokenizer", {"type": "Whitespace"}), "Whitespace"),
    ({"tokenizer": tokenizer_json(clean_text=False)}, "clean_text"),
    (
        with_part("added_tokens", [{"content": "x", "id": SIZE, "single_word": True}]),
        "single_word",
    ),
]
DAMAGED = [
    ({"tokenizer_config": {"strip_accents": "no"}}, "strip_accents"),
    ({"tokenizer": tokenizer_json(lowercase=1)}, "lowercase"),
    ({"tokenizer_config": {"cls_token": 3}}, "cls_token"),
    ({"added_tokens": {"[E1]": SIZE + 1}}, "'[E1]'"),
    ({"added_tokens": {"[E1]": 7}}, "'[E1]'"),
    ({"added_tokens": {"[E1]": "7"}}, "added_tokens.json"),
    ({"tokenizer_config": {"added_tokens_decoder": {"x": {}}}}, "added_tokens_decoder"),
    ({"tokenizer": tokenizer_json(added=[(SIZE, "the")])}, "'the'"),
    (with_part("model", {"type": "WordPiece", "vocab": {"[PAD]": 1}}), "tokenizer.json"),
    (with_part("model", {"type": "WordPiece", "vocab": ["[PAD]"]}), "tokenizer.json"),
    ({"tokenizer": tokenizer_json([*VOCABULARY, "\ud800"])}, "line 51"),
    ({"tokenizer": tokenizer_json([*VOCABULARY, "a\0"])}, "line 51"),
    ({"tokenizer": tokenizer_json([*VOCABULARY, "é" * 126])}, "line 51"),
]
CASES = [("unsupported", *case) for case in REFUSED] + [("damaged", *case) for case in DAMAGED]


@pytest.mark.parametrize(("code", "files", "name"), CASES)
def test_other_tokenizers_are_refused_by_name(code, files, name, tmp_path):
    with raises_code(code, name):
        read_vocabulary(write(tmp_path, **files))


def test_lines_of_white_space_alone_keep_their_ids(tmp_path):
    """Google's Chinese vocabulary has them; they were once taken for the same empty piece."""
    lines = [*VOCABULARY[:-2], "\u2028", "\u3000"]
    support.write_google(tmp_path, vocabulary=lines)
    assert load_base(str(tmp_path)).vocabulary.pieces == tuple(lines)


def test_an_edited_vocab_txt_wins_with_a_warning(tmp_path, caplog):
    path = write(tmp_path, vocab=[*VOCABULARY[:-1], "edited"], tokenizer=tokenizer_json())
    assert read_vocabulary(path).pieces[-1] == "edited"
    assert "vocab.txt" in caplog.text and "tokenizer.json" in caplog.text


def test_adapters_match_the_settings_that_they_were_trained_with(tmp_path, caplog):
    """Earlier versions recorded no settings, because they had none: that is a warning."""
    folders = {"plain": {}, "accents": {"strip_accents": False}}
    for name, config in folders.items():
        support.write_google(tmp_path / name)
        pathlib.Path(tmp_path, name, "tokenizer_config.json").write_text(json.dumps(config))
    plain, accents = (load_base(str(tmp_path / name)) for name in folders)
    assert "tokenizer" not in plain.fingerprint()
    assert accents.fingerprint() == plain.fingerprint() | {"tokenizer": {"strip_accents": False}}
    check_base(support.adapter_config(accents, None, "head"), accents.fingerprint())
    assert not caplog.text
    with raises_code("mismatch", "strip_accents"):
        check_base(support.adapter_config(accents, None, "head"), plain.fingerprint())
    check_base(support.adapter_config(plain, None, "head"), accents.fingerprint())
    assert "strip_accents" in caplog.text
