"""The same pieces as the tokenizer of `transformers`, for every character of Unicode."""

import json
import pathlib
import re

import pytest
import tensorflow as tf

from adapter_bert_tf.base.tokenizer_settings import TokenizerSettings
from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.data.tokenization.words import normalize, split_words
from tests.data.tokenization_test import SPECIAL, WORDS

pytestmark = pytest.mark.parity

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "bases.md"
CHARACTERS = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
PLACES = ("{0}", "a{0}b", "{0}{0}")
# Whether text is lower-cased and accents are removed, and which of the differences concern that.
CASES = [
    (False, False, ("categories", "ideographs")),
    (False, True, ("categories", "ideographs", "marks")),
    (True, False, ("categories", "ideographs", "letters")),
    (True, True, ("categories", "ideographs", "marks", "letters")),
]


def documented():
    """Dict from the name of a group of differences in docs/bases.md to its characters."""
    groups = {}
    for name, codes in re.findall(r"```\n(\w+):([\s0-9A-F-]+)```", DOCS.read_text("utf-8")):
        ranges = [part.split("-") for part in codes.split()]
        groups[name] = {
            chr(code) for r in ranges for code in range(int(r[0], 16), int(r[-1], 16) + 1)
        }
    return groups


@pytest.mark.parametrize(("lower_case", "strip_accents", "names"), CASES)
def test_every_character(lower_case, strip_accents, names):
    """Alone, between letters and doubled; what differs is what docs/bases.md lists."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    normalizer = BertNormalizer(strip_accents=strip_accents, lowercase=lower_case)
    split = BertPreTokenizer().pre_tokenize_str
    settings = TokenizerSettings(lower_case, strip_accents)
    different = set()
    for place in PLACES:
        texts = [place.format(character) for character in CHARACTERS]
        words, _, _ = split_words(normalize(tf.constant(texts), settings), settings)
        for character, text, ours in zip(CHARACTERS, texts, words.to_list(), strict=True):
            theirs = [word.encode() for word, _ in split(normalizer.normalize_str(text))]
            if ours != theirs:
                different.add(character)
    groups = documented()
    assert different == set().union(*(groups[name] for name in names))


FOLDERS = [
    {},
    {"strip_accents": False},
    {"do_lower_case": False},
    {"do_lower_case": False, "strip_accents": True},
    {"tokenize_chinese_chars": False},
]
TEXTS = [
    "Ich MÖCHTE Sål og café",
    "a中文b 中文",
    "hotel\u2028clean",
    "привет" * 10 + " a",
    "😀" * 100 + " " + "😀" * 101,
    "the covid Covid [E1]a [e1] xcovidy New York [E1][E1]",
    "",
]


@pytest.mark.parametrize("settings", FOLDERS)
def test_folders_that_transformers_saved(settings, tmp_path):
    """Its settings, added tokens and offsets, with and without vocab.txt."""
    import transformers

    source = tmp_path / "source"
    source.mkdir()
    (source / "vocab.txt").write_text("\n".join((*SPECIAL, *WORDS)) + "\n", "utf-8")
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = transformers.BertTokenizerFast.from_pretrained(source)
    tokenizer.add_tokens(["Covid", "new york", "中文"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["[E1]"]})
    tokenizer.save_pretrained(tmp_path)
    expected = tokenizer(TEXTS, add_special_tokens=False, return_offsets_mapping=True)
    names = [name for name in ("vocab.txt", "tokenizer.json") if (tmp_path / name).exists()]
    for name in names:
        encoder = TextEncoder(read_vocabulary(str(tmp_path / name)), 512)
        assert encoder.segments(tf.constant(TEXTS))[0].to_list() == expected["input_ids"]
        ids, starts, ends = (part.to_list() for part in encoder.align(tf.constant(TEXTS)))
        assert ids == expected["input_ids"]
        offsets = [list(zip(*pair, strict=True)) for pair in zip(starts, ends, strict=True)]
        assert offsets == expected["offset_mapping"]
    assert "tokenizer.json" in names
