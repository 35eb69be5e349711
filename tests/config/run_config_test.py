"""The configuration of one run as a value."""

import pytest

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from tests.refusals import raises_code


@pytest.fixture
def config():
    values = {"seed": 5, "output_dir": "out"}
    return RunConfig.from_values(Command.SQUAD, values, values)


def test_a_change_makes_another_value(config):
    changed = config.changed(seed="6", do_train=True, adapter_size=None)
    assert (changed.training.seed, changed.actions.do_train) == (6, True)
    assert changed.method.adapter_size is None
    assert (config.training.seed, config.actions.do_train) == (5, False)
    assert config.given == {"seed", "output_dir"}
    assert changed.given == {"seed", "output_dir", "do_train", "adapter_size"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sead", 1, "invalid: 'sead'"),
        ("task_name", "mrpc", "invalid: 'task_name'"),  # Of the other command.
        ("seed", -1, "invalid: --seed=-1"),
        ("seed", 1.5, "invalid: --seed=1.5"),
        ("keep", "first", "invalid: --keep=first"),
    ],
)
def test_a_wrong_change_is_one_message(name, value, message, config):
    with raises_code(message):
        config.changed(**{name: value})


def test_values_and_defaults_are_those_of_the_command(config):
    assert (config.defaults["max_seq_length"], config.data.max_seq_length) == (384, 384)
    assert RunConfig.from_values(Command.CLASSIFIER, {}).data.max_seq_length == 128
    assert "task_name" not in config.values and "train_file" in config.values


def test_equal_values_are_equal_configurations(config):
    """Whatever was given: a configuration is the key of what was made from it."""
    same = config.changed(seed=5, keep="last")
    assert same == config and hash(same) == hash(config) and same.given != config.given
    assert config.changed(seed=6) != config


def test_only_some_settings(config):
    part = config.changed(doc_stride=7, keep="best").only({"seed", "doc_stride"})
    assert (part.training.seed, part.questions.doc_stride) == (5, 7)
    assert (part.evaluation.keep, part.output.output_dir) == ("last", None)
    assert part.given == {"seed", "doc_stride"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"a": 2, "b": 0.5}, "a=2,b=0.5"), (["a", "b"], "a,b"), ("a=2", "a=2"), (None, None)],
)
def test_values_of_python_are_texts_of_the_command_line(value, expected):
    config = RunConfig(command=Command.CLASSIFIER).changed(class_weights=value)
    assert config.training.class_weights == expected
