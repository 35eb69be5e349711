"""Choices that come from the files: which GELU, epsilon, case."""

import json

import pytest

from adapter_bert_tf.base.config import read_config
from adapter_bert_tf.base.vocabulary import read_vocabulary
from tests.refusals import raises_code
from tests.support import CONFIG, VOCABULARY

ACTIVATIONS = [
    ({"hidden_act": "gelu"}, "gelu"),
    ({"hidden_act": "relu"}, "relu"),
    ({"hidden_act": "gelu", "model_type": "bert"}, "gelu_erf"),
    ({"hidden_act": "gelu", "architectures": ["BertModel"]}, "gelu_erf"),
    ({"hidden_act": "gelu_new", "model_type": "bert"}, "gelu"),
]


def _write(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG | changes))
    return str(path)


@pytest.mark.parametrize(("changes", "expected"), ACTIVATIONS)
def test_which_gelu_depends_on_who_wrote_the_file(tmp_path, changes, expected):
    assert read_config(_write(tmp_path, **changes)).activation == expected


def test_epsilon_and_types_come_from_the_file(tmp_path):
    config = read_config(_write(tmp_path, layer_norm_eps=1e-5, type_vocab_size=4))
    assert (config.norm_epsilon, config.type_vocab_size) == (1e-5, 4)
    assert read_config(_write(tmp_path)).norm_epsilon == 1e-12


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "roberta"},
        {"embedding_size": 8},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
    ],
)
def test_other_architectures_are_refused(tmp_path, changes):
    with raises_code("unsupported"):
        read_config(_write(tmp_path, **changes))


# 39 pieces of the vocabulary have letters; a tenth of 42 is more than 3, and of 44 less than 5.
FEW = [*VOCABULARY, "Anfield", "COVID", "The", "[Unused1]"]
CASED = [*FEW, "A", "##B"]
CASES = [
    (VOCABULARY, None, True, ""),
    (VOCABULARY, True, True, ""),
    (VOCABULARY, False, False, "do_lower_case=False, although 0 of 39 word pieces"),
    (FEW, None, True, "3 of 42 word pieces with letters"),
    (FEW, False, False, "do_lower_case=False, although 3 of 42 word pieces"),
    (FEW, True, True, ""),
    (CASED, None, False, ""),
    (CASED, False, False, ""),
    (CASED, True, True, "do_lower_case=True, although 5 of 44 word pieces"),
    (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "中"], None, True, ""),
]


@pytest.mark.parametrize(("pieces", "flag", "expected", "warning"), CASES)
def test_case_is_inferred_by_share_unless_given(tmp_path, caplog, pieces, flag, expected, warning):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(pieces) + "\n")
    assert read_vocabulary(str(path), flag).lower_case is expected
    assert warning in caplog.text and bool(warning) == bool(caplog.text)


@pytest.mark.parametrize("stated", [True, False])
def test_the_tokenizer_config_beside_it_decides(tmp_path, caplog, stated):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(CASED) + "\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": stated}))
    for flag in (None, stated):
        assert read_vocabulary(str(path), flag).lower_case is stated
    assert not caplog.text
    with raises_code("conflict", f"do_lower_case={not stated}", "tokenizer_config.json"):
        read_vocabulary(str(path), not stated)
