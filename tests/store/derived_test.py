"""How derived adapters record what they were made from; they do not claim to be a run's."""

import hashlib

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.interop.adapter_bert import import_checkpoint
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.store.combining.combine import average, drop_lowest_layers
from adapter_bert_tf.store.directory import extract_task
from tests.refusals import raises_code
from tests.support import GOLDEN

HUB = GOLDEN.parent / "adapterhub"
METRIC = {"name": "f1", "value": 0.5, "split": "dev"}


def _of_run(folder, number):
    """The adapter of a run, as training writes it."""
    model = AdapterModel(load_base(str(GOLDEN / "bert_model.ckpt")))
    model.add_adapter("mrpc", ["0", "1"], AdapterConfig(4))
    model.save_adapter("mrpc", str(folder / "python"))
    saved = load_adapter(str(folder / "python"))
    record = {"command": f"train --seed={number}", "global_step": 40 + number, "run": f"r{number}"}
    path = str(folder / f"run{number}")
    save_adapter(path, saved.config | record | {"metric": METRIC}, saved.weights)
    return load_adapter(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [_of_run(folder, number) for number in (1, 2)]


def _source(saved):
    config = saved.config
    return {
        "name": config.get("name") or config["task"],
        "sha256": config["sha256"],
        "command": config["command"],
    }


DERIVED = {  # The operation, its options on the card, and a function of two runs: (new, sources).
    "mean": ("average", "method=mean", lambda a, b: (average([a, b]), [a, b])),
    "ties": (
        "average",
        "method=ties, shares=[1.0, 0.5], density=0.2",
        lambda a, b: (average([a, b], "ties", (1, 0.5), np.float64(0.2)), [a, b]),
    ),
    "dare": (
        "average",
        "method=dare, density=0.5, seed=7",
        lambda a, b: (average([a, b], "dare", seed=np.int64(7)), [a, b]),
    ),
    "drop": ("drop", "", lambda a, b: (drop_lowest_layers(a, 1), [a])),
}


@pytest.mark.parametrize("case", DERIVED)
def test_sources_are_recorded(case, runs, tmp_path):
    operation, options, make = DERIVED[case]
    new, sources = make(*runs)
    expected = {"operation": operation, "sources": list(map(_source, sources))}
    save_adapter(str(tmp_path / "a"), new.config, new.weights)
    config = load_adapter(str(tmp_path / "a")).config
    shown = config["derived"].pop("options", {})
    assert ", ".join(f"{name}={value}" for name, value in shown.items()) == options
    assert config["derived"] == expected
    assert not {"run", "global_step"} & config.keys()
    assert (config["metric"], config["task"]) == (None, "mrpc")
    assert "--seed=" not in config["command"]
    card = (tmp_path / "a" / "README.md").read_text()
    assert "Trained with" not in card and "Made with" in card and options in card
    for source in sources:
        assert source.config["sha256"] in card and source.config["command"] in card


def test_nothing_dropped_is_the_same_adapter(runs):
    assert drop_lowest_layers(runs[0], 0) is runs[0]


def test_one_task_of_several():
    saved = load_adapter(str(GOLDEN.parent / "several" / "per_task_adapters"))
    config = extract_task(saved, "pairs").config
    assert config["derived"] == {"operation": "generate", "sources": [_source(saved)]}


def test_imports_record_the_files(tmp_path):
    arguments = [str(HUB / "pfeiffer"), f"--output={tmp_path / 'a'}"]
    assert main(["import", *arguments, f"--base_model={HUB / 'base'}"]) == 0
    derived = load_adapter(str(tmp_path / "a")).config["derived"]
    digests = {source["name"]: source["sha256"] for source in derived["sources"]}
    files = (HUB / "pfeiffer").iterdir()
    assert digests == {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    assert "Trained with" not in (tmp_path / "a" / "README.md").read_text()

    base, path = load_base(str(GOLDEN / "bert_model.ckpt")), GOLDEN / "adapter_model.ckpt"
    (source,) = import_checkpoint(str(path), base, "mnli", list("abc")).config["derived"]["sources"]
    index = path.with_name("adapter_model.ckpt.index").read_bytes()
    assert source["sha256"] == hashlib.sha256(index).hexdigest()


@pytest.mark.parametrize("is_trained", [False, True])
def test_training_in_python_ends_the_claim(is_trained, runs, tmp_path):
    """Of the command, the step and the result that belong to the loaded weights."""
    model = AdapterModel(load_base(str(GOLDEN / "bert_model.ckpt")))
    save_adapter(str(tmp_path / "a"), runs[0].config, runs[0].weights)
    model.load_adapter(str(tmp_path / "a"))
    if is_trained:
        (variable, *_) = model.model("mrpc").trainable_variables
        variable.assign_add(np.ones(variable.shape))
    model.save_adapter("mrpc", str(tmp_path / "b"))
    config = load_adapter(str(tmp_path / "b")).config
    found = (config["command"], config.get("global_step"), config["metric"])
    assert found == (("", None, None) if is_trained else ("train --seed=1", 41, METRIC))


def test_a_card_without_a_command(runs, tmp_path):
    save_adapter(str(tmp_path / "a"), runs[0].config | {"command": ""}, runs[0].weights)
    card = (tmp_path / "a" / "README.md").read_text()
    assert "Trained with" not in card and "Use it with" in card


SOURCE = {"name": "a", "sha256": None, "command": ""}
WRONG = {
    "no sources": {"operation": "average"},
    "another operation": {"operation": "sum", "sources": [SOURCE]},
    "a text": {"operation": "average", "sources": ["a"]},
    "a source without a name": {"operation": "average", "sources": [{"sha256": None}]},
    "options that are a list": {"operation": "average", "sources": [SOURCE], "options": [1]},
    "an operation that is a list": {"operation": ["average"], "sources": [SOURCE]},
}


@pytest.mark.parametrize("case", WRONG)
def test_damaged_records_are_refused(case, runs, tmp_path):
    config = runs[0].config | {"derived": WRONG[case]}
    with raises_code("invalid", "derived"):
        save_adapter(str(tmp_path / "a"), config, runs[0].weights)
