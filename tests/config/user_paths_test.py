"""`~/` at the start of a path is the home directory, though the shell leaves it as it is."""

import pytest
from absl import flags

from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.cli.predict import parse
from adapter_bert_tf.config import settings
from adapter_bert_tf.config.parsing import expand_user
from adapter_bert_tf.config.setting import Command

PATHS = {
    "~/a": "/home/me/a",
    "~/": "/home/me/",
    "~": "~",
    "a/~/b": "a/~/b",
    "~user/a": "~user/a",
    "~/a,x=~/b,c": "/home/me/a,x=/home/me/b,c",
    "gs://a/~/b": "gs://a/~/b",
}


@pytest.fixture(autouse=True)
def home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")


@pytest.mark.parametrize("path", PATHS)
def test_only_at_the_start(path):
    assert expand_user(path) == PATHS[path]


@pytest.mark.parametrize("command", Command)
def test_all_paths_of_the_commands_and_no_other_text(command):
    rows = [row for row in settings.settings_of(command) if row.kind == "string"]
    values = flags.FlagValues()
    define_flags(command, values)
    values([command.value, *(f"--{row.name}=~/a" for row in rows)])
    for row in rows:
        assert values[row.name].value == ("/home/me/a" if row.path else "~/a"), row.name
    changed = config_of(values).changed(output_dir="~/b")
    assert changed.output.output_dir == "/home/me/b"


def test_predict():
    words = ("--adapter_dir=~/a", "--predict_file=~/b.csv", "--output=~/c.csv")
    asked = parse(words)
    assert (asked.adapter_dir, asked.predict_file, asked.output) == (
        "/home/me/a",
        "/home/me/b.csv",
        "/home/me/c.csv",
    )
    assert parse(("--adapter_dir=a", "--text_a=~/b")).text_a == "~/b"
