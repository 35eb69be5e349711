"""Choices that come from the files: which GELU, epsilon, case."""

import json

import pytest

from adapter_bert_tf.base.config import read_config
from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.errors import InputError
from tests.refusals import refused
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
    [{"model_type": "roberta"}, {"embedding_size": 8}, {"position_embedding_type": "relative_key"}],
)
def test_other_architectures_are_refused(tmp_path, changes):
    with refused("unsupported"):
        read_config(_write(tmp_path, **changes))


CASES = [
    (VOCABULARY, None, True),
    (VOCABULARY, True, True),
    (VOCABULARY, False, InputError),
    ([*VOCABULARY, "The"], None, False),
    ([*VOCABULARY, "The"], False, False),
    ([*VOCABULARY, "The"], True, InputError),
]


@pytest.mark.parametrize(("pieces", "flag", "expected"), CASES)
def test_case_is_inferred_and_must_agree(tmp_path, pieces, flag, expected):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(pieces) + "\n")
    if expected is InputError:
        with refused("conflict", "do_lower_case"):
            read_vocabulary(str(path), flag)
    else:
        assert read_vocabulary(str(path), flag).lower_case is expected


def test_the_tokenizer_config_beside_it_decides(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert read_vocabulary(str(path)).lower_case is False
