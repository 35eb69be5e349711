"""`--config`, `--sweep` and `--adapter` of any content: read, or refused in one short message."""

import resource
import time

import pytest
from absl import flags

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.cli.config_file import apply_config_file
from adapter_bert_tf.config import yaml_file
from adapter_bert_tf.config.sections.model import MethodConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.yaml_file import read_yaml
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.method import from_config
from adapter_bert_tf.sanitize import parse_json, preview, printable
from adapter_bert_tf.sweeps.grid import all_runs, combinations, read_grid
from tests.refusals import raises_code

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 9)
)
# Content of a YAML file, and what is said.
CONTENTS = {
    "not UTF-8": (b"seed: \xff", "damaged: 'utf-8'"),
    "UTF-16": ("seed: 1".encode("utf-16"), "damaged: 'utf-8'"),
    "zeros": (b"\0" * 100, "damaged: Cannot read"),
    "escape sequences": (b"seed: \x1b[2J", "damaged: Cannot read"),
    "a name twice": (b"seed: 1\ntop_k: 2\nseed: 2\n", "damaged: 'seed'"),
    "a name twice within": (b"seed: [{a: 1, b: 2, a: 1}]", "damaged: 'a'"),
    "no such date": (b"seed: 2026-13-45", "damaged: month must be in"),
    "no such time": (b"seed: 2026-01-01T99:99:99Z", "damaged: Cannot read"),
    "no date": (b"seed: !!timestamp x", "damaged: does not fit its tag"),
    "no bool": (b"seed: !!bool x", "damaged: does not fit its tag"),
    "no integer": (b"seed: !!int _", "damaged: does not fit its tag"),
    "no number": (b"seed: !!float x", "damaged: could not convert"),
    "an object of Python": (
        b"seed: !!python/object/apply:os.getcwd []",
        "damaged: could not determine",
    ),
    "a list as a name": (b"? [seed]\n: 1", "damaged: unhashable"),
    "deep": (b"[" * 200_000, "damaged: nested too deeply"),
    "deep blocks": (b"- " * 50_000, "damaged: nested too deeply"),
    "aliases": (BOMB.encode(), "damaged: expands to more than 200,000 values"),
    "merged aliases": (MERGED.encode(), "damaged: expands to more than 200,000 values"),
    "a part of itself": (b"seed: &a [*a]", "damaged: expands to more than"),
    "a long number": (b"seed: " + b"9" * 5000, "damaged: Cannot read"),
    "two documents": (b"seed: 1\n---\nseed: 2", "damaged: Cannot read"),
    "a long text": (b"x" * 100_000, "invalid: `setting: value`"),
    "a huge file": (b"#" * (5 << 20), "damaged: more than 4,194,304 bytes"),
}


def _short(raised, path):
    message = str(raised.value)
    assert str(path) in message and len(message) < 1500
    assert printable(message, "\n") == message


@pytest.mark.parametrize("case", CONTENTS)
def test_what_is_no_yaml(case, tmp_path):
    content, message = CONTENTS[case]
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with raises_code(message) as raised:
        read_yaml(str(path), "--config")
    _short(raised, path)
    assert time.process_time() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18  # Kilobytes.


def test_a_folder_is_no_yaml(tmp_path):
    with raises_code("unavailable", "--config="):
        read_yaml(str(tmp_path), "--config")


def test_schemes_that_are_not_supported():
    with raises_code("unsupported", "s3://a"):
        read_yaml("s3://a", "--config")


def test_aliases_and_byte_order_marks_are_read(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("train_batch_size: &size 8\neval_batch_size: *size\n", "utf-8-sig")
    assert read_yaml(str(path), "--config") == {"train_batch_size": 8, "eval_batch_size": 8}


def test_the_bound_of_values_is_of_what_they_stand_for(monkeypatch):
    monkeypatch.setattr(yaml_file, "MAX_VALUES", 12)
    assert yaml_file.parse_yaml("[&a [1, 2], *a, *a]") == [[1, 2]] * 3
    with pytest.raises(ValueError, match="more than 12 values"):
        yaml_file.parse_yaml("[&a [1, 2], *a, *a, *a]")


def _parsed(*arguments):
    values = flags.FlagValues()
    define_flags(Command.CLASSIFIER, values)
    values(["run_classifier.py", *arguments])
    return values


# A flag and its value in a YAML file, and what is said.
VALUES = {
    "a list": ("seed: [1, 2]", "invalid: seed"),
    "another file of flags": ("config: other.yaml", "unsupported: 'other.yaml'"),
    "a set": ("seed: !!set {a, b}", "invalid: seed"),
    "a hexadecimal number": ("seed: 0x" + "f" * 5000, "invalid: about 6021 digits"),
    "a zero in a path": ('data_dir: "a\\0b"', "invalid: data_dir"),
    "a long text": ("seed: " + "x" * 100_000, "invalid: seed"),
    "unknown names": ("\n".join(f"a{i}: 1" for i in range(1000)), "invalid: unknown flags"),
    "a name of another kind": ("2026-01-01: 1", "invalid: unknown flags"),
    "a record of lists": ("flags: {output_dir: [1], do_eval: [1]}", "invalid: do_eval"),
    "a name that forges": ('"a\\e[2K\\nok": 1', "invalid: unknown flags"),
}


@pytest.mark.parametrize("case", VALUES)
def test_values_that_no_flag_takes(case, tmp_path):
    text, message = VALUES[case]
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with raises_code(message) as raised:
        apply_config_file(_parsed(f"--config={path}"))
    _short(raised, path)


# A grid, and what is said.
GRIDS = {
    "lists of lists": ("seed: 1\nlearning_rate: [[1e-3]]", "invalid: one value"),
    "aliases": ("learning_rate: [&a [1], *a]", "invalid: each of the values must be one value"),
    "many runs": (
        "\n".join(f"{name}: [{', '.join(map(str, range(100)))}]" for name in ("top_k", "pad_to")),
        "invalid: makes 10,000,000,000 runs",
    ),
    "a long name": (f"adapter: [{'x' * 300}]", "invalid: longer than 240 bytes"),
    "names of another kind": ("{1: [1], null: [2]}", "invalid: unknown flags"),
    "a grid of text": ("grid: seed", "invalid: unknown flags"),
    "aliases of aliases": (BOMB, "damaged: expands to more than 200,000 values"),
    "no such date": ("learning_rate: [2026-13-45]", "damaged: month must be in"),
    "deep": ("learning_rate: " + "[" * 200_000, "damaged: nested too deeply"),
}


@pytest.mark.parametrize("case", GRIDS)
def test_what_is_no_grid(case, tmp_path):
    text, message = GRIDS[case]
    path = tmp_path / "a.yaml"
    path.write_text(text)
    run = config_of(
        _parsed("--do_train", "--do_eval", "--output_dir=o", f"--sweep={path}", "--num_trials=1")
    )
    if case == "many runs":
        run = run.changed(num_trials=1_000_000)
    with raises_code(message) as raised:
        all_runs(run, combinations(run, read_grid(run)))
    assert len(str(raised.value)) < 1500


def test_many_trials_are_counted_first():
    run = config_of(_parsed("--do_train", "--do_eval", "--output_dir=o", "--num_trials=99999999"))
    with raises_code("invalid", "99,999,999 runs"):
        all_runs(run, combinations(run, read_grid(run)))


# Content of --adapter=FILE, and what is said.
ADAPTERS = {
    "not UTF-8": (b'{"activation": "\xff"}', "invalid: not valid JSON"),
    "deep": (b"[" * 200_000, "invalid: nested too deeply"),
    "a list": (b"[1]", "invalid: must be a JSON object"),
    "a long number": (b'{"scale": ' + b"9" * 400 + b"}", "invalid: of 400 digits"),
    "a long text": (b'{"activation": "' + b"x" * 100_000 + b'"}', "invalid: activation"),
    "many layers": (b'{"layers": [' + b"1," * 100_000 + b"999]}", "invalid: layers"),
    "unknown keys": (b'{"\\u001b[2K\\n": 1}', "invalid: adapter"),
}


def _adapter(path):
    return MethodConfig(adapter=str(path))


@pytest.mark.parametrize("case", ADAPTERS)
def test_what_is_no_adapter(case, tmp_path):
    content, message = ADAPTERS[case]
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with raises_code(message) as raised:
        from_config._with_overrides(_adapter(path))
    _short(raised, path)


def test_an_adapter_file_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"bottleneck_size": 3}', "utf-8-sig")
    assert from_config._with_overrides(_adapter(path)) == ModuleConfig.from_dict(
        {"bottleneck_size": 3}
    )


def test_anything_is_shown_in_short():
    bomb = ["x" * 1000] * 1000
    for _ in range(30):
        bomb = [bomb] * 10
    itself = []
    itself.append(itself)
    for value in (bomb, itself, "x" * 10**6, b"x" * 10**6, 10**5000, {1: bomb, "a": 10**5000}):
        assert len(preview(value)) <= 200
    assert preview("a\x1b\n\ud800\u202e") == r"'a\x1b\n\ud800\u202e'"
    assert preview([1, "é", None, 0.5]) == "[1, 'é', None, 0.5]"


def test_a_message_escapes_what_it_quotes():
    said = str(InputError("a\x1b[2K\r\ud800\u2028b\nc" + "x" * 100_000))
    assert said.startswith(r"a\x1b[2K\r\ud800\u2028b" + "\nc") and len(said) <= 8000


def test_numbers_that_a_float_reaches_are_read():
    assert parse_json("9" * 300) == int("9" * 300)
    with pytest.raises(ValueError, match="301 digits"):
        parse_json("9" * 301)
