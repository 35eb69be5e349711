"""`--config`: what it sets, and what it leaves to the command line."""

import json

import pytest
from absl import flags

from adapter_bert_tf.command.config_file import apply_config_file
from adapter_bert_tf.command.definitions import define_flags
from adapter_bert_tf.command.row import Command
from adapter_bert_tf.errors import InputError


def parsed(path, *arguments):
    """The flags of `run_classifier.py` with a configuration."""
    values = flags.FlagValues()
    define_flags(Command.CLASSIFIER, values)
    values(["run_classifier.py", f"--config={path}", *arguments])
    apply_config_file(values)
    return values


def test_the_command_line_wins(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("seed: 7\nlearning_rate: 1e-2\ndo_train: true\nadapter_size: null\n")
    values = parsed(path, "--seed=9")
    assert (values.seed, values.learning_rate, values.do_train) == (9, 0.01, True)
    assert values["learning_rate"].present and not values["adapter_size"].present


def recorded(folder, **flag_values):
    path = folder / "run.json"
    path.write_text(json.dumps({"flags": flag_values, "versions": {}}))
    return path


def test_a_run_is_repeated_elsewhere(tmp_path):
    path = recorded(
        tmp_path,
        do_train=True,
        output_dir="there",
        adapter_dir="a",
        export_dir="e",
        overwrite=True,
        config="c",
        seed=3,
    )
    values = parsed(path, "--output_dir=here")
    assert (values.output_dir, values.seed, values.config) == ("here", 3, str(path))
    assert (values.adapter_dir, values.export_dir, values.overwrite) == (None, None, False)


@pytest.mark.parametrize(("adapter_dir", "read"), [(None, "there/adapter"), ("a", "a")])
def test_what_did_not_train_reads_the_same_adapter(adapter_dir, read, tmp_path):
    path = recorded(tmp_path, do_eval=True, output_dir="there", adapter_dir=adapter_dir)
    assert parsed(path).adapter_dir == read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sead: 1", r"unknown flags \['sead'\]"),
        ("seed: [1, 2]", "seed must be one value"),
        ("seed: -1", "seed"),
        ("- seed", "must hold `flag: value` lines"),
        ("seed: {", "Cannot read --config="),
    ],
)
def test_a_wrong_file_is_one_message(text, message, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        parsed(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="Cannot read --config="):
        parsed(tmp_path / "none.yaml")
