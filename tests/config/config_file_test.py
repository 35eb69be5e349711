"""`--config`: what it sets, and what it leaves to the command line."""

import json

import pytest
from absl import flags

from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.config_file import apply_config_file
from adapter_bert_tf.config.setting import Command
from tests.refusals import raises_code


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
        ("sead: 1", "invalid: 'sead'"),
        ("seed: [1, 2]", "invalid: seed"),
        (
            "predict_file: a\nseed: 1",
            "invalid: 'predict_file'",
        ),
        ("predict_file: a\nsead: 1", "invalid: 'predict_file'"),
        ("seed: -1", "invalid: seed"),
        ("- seed", "invalid: `setting: value`"),
        ("seed: {", "damaged: --config"),
    ],
)
def test_a_wrong_file_is_one_message(text, message, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with raises_code(message):
        parsed(path)


def test_settings_may_stand_in_their_sections(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("training: {seed: 7}\nmethod:\n  adapter_size: 8\ndo_train: true\n")
    values = parsed(path)
    assert (values.seed, values.adapter_size, values.do_train) == (7, 8, True)
    path.write_text("method: {seed: 7}\n")
    with raises_code("invalid", "seed"):
        parsed(path)
    path.write_text("seed: 1\ntraining: {seed: 1}\n")
    with raises_code("invalid", "'seed'"):
        parsed(path)


def test_a_file_that_is_not_there(tmp_path):
    with raises_code("unavailable", "--config="):
        parsed(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "written", ["2026_11_26", "007", "1.10", "12:30", "0x1F", "1e3", "2026-11-26", "7", "0.5", "-1"]
)
def test_names_are_what_is_written(written, tmp_path):
    """YAML 1.1 takes many of them for numbers."""
    path = tmp_path / "config.yaml"
    path.write_text(f"output_dir: {written}\nmax_seq_length: 032\nlearning_rate: 1.50e-3\n")
    values = parsed(path)
    assert values.output_dir == written
    assert (values.max_seq_length, values.learning_rate) == (32, 0.0015)


def test_a_truth_is_no_name(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("label_column: no\n")
    with raises_code("invalid", "label_column"):
        parsed(path)
    path.write_text("label_column: 'no'\ndo_eval: yes\n")
    assert (parsed(path).label_column, parsed(path).do_eval) == ("no", True)
