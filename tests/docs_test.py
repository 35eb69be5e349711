"""The code of `docs/extend.md`, executed in its order in one folder, on a tiny base.

A block that begins with the comment `# NAME.py` is a file of that name. What the page registers is
taken back afterwards.
"""

import importlib
import json
import re
import shlex
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import adapter_bert_tf as abt
from adapter_bert_tf.adapters import registry
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.serving.merged import merged_model
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.tasks import GLUE, TASKS
from adapter_bert_tf.training.parameter_report import format_report
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import processes, support
from tests.refusals import raises_code
from tests.runs import ROOT, command, write_mrpc
from tests.tasks import glue_test

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "extend.md"
MODULES = ("scaling", "shifting", "topics")


def blocks(section, language):
    """The code of a section, in a language; "" for what is typed in a shell."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.S | re.M)
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
    return [code for name, code in found if name == language]


def arguments(section):
    """The arguments of the command line of a section."""
    (line,) = blocks(section, "")
    return shlex.split(line.replace("\\\n", " "))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A reader's folder, and the names that the page's code defines, in their order."""
    folder = tmp_path_factory.mktemp("reader")
    support.write_google(folder / "base")
    write_mrpc(folder / "MRPC")
    (json_file,) = blocks("Add a method", "json")
    (folder / "scaling.json").write_text(json_file)
    registries = (registry.MODULE_KINDS, TASK_TYPES, TASKS)
    before = [dict(known) for known in registries]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        tf_keras.utils.set_random_seed(0)
        yield folder, run_page(folder)
    for known, content in zip(registries, before, strict=True):
        known.clear()
        known.update(content)
    for module in MODULES:
        sys.modules.pop(module, None)


def run_page(folder):
    """Writes the files of the page and executes the rest; returns the names."""
    names = {"tf": tf, "tf_keras": tf_keras}
    for section in ("Add a method", "Add a task", "Add a task type"):
        for code in blocks(section, "python"):
            file = re.match(r"# (\w+\.py)\n", code)
            if file:
                (folder / file[1]).write_text(code)
                importlib.invalidate_caches()
            else:
                exec(code, names)
    return names


def inputs_of(names, *rows):
    return names["texts"].inputs(list(rows))


def test_the_method_trains(page):
    _, names = page
    scales = {
        name: value.numpy()
        for name, value in names["model"].model("mood").named_variables().items()
        if name.endswith("/scale")
    }
    assert len(scales) == 4
    assert all(np.abs(scale - 1).max() > 1e-4 for scale in scales.values())


def test_the_method_is_saved_and_loaded(page):
    folder, names = page
    expected = names["model"](inputs_of(names, "a very good cat"), adapter="mood")
    np.testing.assert_array_equal(names["logits"], expected)
    assert load_adapter(str(folder / "mood")).config["adapter"]["kind"] == "scaling"


def test_the_method_starts_as_the_base(page):
    _, names = page
    inputs = support.batch()
    scaled = names["base"].build_encoder(names["Scaling"]())(inputs)["pooled_output"]
    bare = names["base"].build_encoder()(inputs)["pooled_output"]
    np.testing.assert_allclose(scaled, bare, atol=1e-6)


def test_the_method_is_counted(page):
    _, names = page
    model = abt.Classifier(names["base"].build_encoder(names["Scaling"]()), 2)
    text = format_report(model, select_trained(model, Tuning()), Tuning())
    assert re.search(r"adapters +64 +64 ", text)  # Two layers of two sublayers of 16.


def test_the_method_mixes_with_others_row_by_row(page):
    """Tasks of one kind in one pass, as `stackable` says."""
    _, names = page
    model = abt.AdapterModel(names["base"])
    model.load_adapter("mood")
    model.add_adapter("fresh", ["a", "b", "c"], names["Scaling"](), max_seq_length=16)
    model.add_adapter("plain", ["a", "b"], max_seq_length=16)
    inputs, tasks = support.batch(rows=3), ["fresh", "mood", "plain"]
    mixed = model(inputs, adapter=tasks)
    for row, name in enumerate(tasks):
        alone = model(inputs, adapter=name)[row]
        np.testing.assert_allclose(mixed[row][: len(alone)], alone, atol=1e-6)


def test_the_method_refuses_what_it_cannot_mean(page):
    with raises_code("invalid", "true or false"):
        ModuleConfig.from_dict({"kind": "scaling", "attention": 3})


@pytest.fixture(scope="module")
def shifted(page):
    """A model with two tasks of the method that changes projections, with random vectors."""
    _, names = page
    config, rng = importlib.import_module("shifting").Shifting, np.random.default_rng(0)
    model = abt.AdapterModel(names["base"])
    for name, layers in (("one", (1,)), ("two", None)):
        adapter = config(("query", "value"), layers)
        task = model.add_adapter(name, ["a", "b"], adapter, max_seq_length=16)
        for variable in task.trainable_variables:
            variable.assign_add(rng.normal(size=variable.shape) * 0.3)
    return model


def test_a_method_may_change_projections(page, shifted):
    (code,) = (c for c in blocks("Add a method", "python") if c.startswith("# shifting.py"))
    assert len(code.splitlines()) <= 60
    _, names = page
    inputs, tasks = support.batch(rows=4), ["one", "two", "one", "two"]
    mixed = shifted(inputs, adapter=tasks)
    for row, name in enumerate(tasks):
        np.testing.assert_allclose(mixed[row], shifted(inputs, adapter=name)[row], atol=1e-6)
    start = names["base"].build_encoder(importlib.import_module("shifting").Shifting())
    bare = names["base"].build_encoder()(inputs, 1)["pooled_output"]
    np.testing.assert_allclose(start(inputs, 1)["pooled_output"], bare, atol=1e-5)
    text = format_report(shifted.model("two"), shifted.model("two").named_variables(), Tuning())
    assert re.search(r"adapters +64 +64 ", text)  # Queries and values of 16, in two layers.


@pytest.mark.parametrize("name", ["one", "two"])
def test_such_a_method_merges(name, shifted):
    task, inputs = shifted.model(name), support.batch(rows=4)
    merged = merged_model(task, shifted.config(name))
    assert not any(n.startswith("adapters/") for n in merged.named_variables())
    np.testing.assert_allclose(merged(inputs), task(inputs), atol=1e-5)


def test_such_a_method_is_checked_and_loses_layers(page):
    config = importlib.import_module("shifting").Shifting()
    assert config.without_lowest(1, 2).layers == (1,) == config.adjusted(layers=[1]).layers
    assert config.changed_sublayers == ("attention",)
    with raises_code("invalid", "projections"):
        ModuleConfig.from_dict({"kind": "shifting", "projections": ["output"]})


def test_the_method_through_the_command(page):
    """A process of its own, which knows of the method by the page's script alone."""
    folder, _ = page
    _, script, *flags = arguments("Add a method")
    done = processes.run(
        [sys.executable, script, *flags],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"adapters +32 +32 ", done.stdout)
    record = json.loads((folder / "out" / "run.json").read_text())
    assert record["adapter"] == json.loads((folder / "scaling.json").read_text())
    assert (folder / "out" / "saved_model" / "saved_model.pb").exists()
    weights = load_adapter(str(folder / "out" / "adapter")).weights
    scales = [value for name, value in weights.items() if name.endswith("/scale")]
    assert len(scales) == 2 and all(np.abs(scale - 1).max() > 1e-4 for scale in scales)


def test_flags_of_the_bottleneck_are_refused(page):
    folder, _ = page
    flags = arguments("Add a method")[2:]
    message = command(*absolute(folder, flags), f"--output_dir={folder}/other", "--adapter_size=8")
    assert "Leave out --adapter_size" in message


def absolute(folder, flags):
    """Flags whose relative paths are those of the reader's folder."""
    return [
        re.sub(r"^--(data_dir|output_dir|base_model|adapter)=", rf"--\1={folder}/", flag)
        for flag in flags
    ]


@pytest.fixture
def with_task(page, monkeypatch):
    """The task and its test are where the page says."""
    _, names = page
    task = names["BOOLQ"]
    monkeypatch.setitem(TASKS, task.name, task)
    monkeypatch.setattr(glue_test, "GLUE", (*GLUE, task))
    for name, row in names["ROW"].items():
        monkeypatch.setitem(glue_test.ROWS, name, row)
    return task


def test_the_row_of_the_task_passes_its_test(with_task, tmp_path):
    assert with_task.name in glue_test.ROWS
    glue_test.test_every_task_has_a_row()
    glue_test.test_rows_as_published(with_task.name, tmp_path)


def test_the_task_through_the_command(page, with_task):
    folder, _ = page
    write_boolq(folder)
    _, script, *flags = arguments("Add a task")
    assert script == "run_classifier.py"
    assert command(*absolute(folder, flags)) is None
    assert "eval_accuracy" in (folder / "out_boolq" / "eval_results.txt").read_text()
    lines = (folder / "out_boolq" / "BoolQ.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction" and len(lines) == 9
    assert {line.split("\t")[1] for line in lines[1:]} <= {"False", "True"}


def write_boolq(folder):
    """The texts of the folder `MRPC` as questions and passages."""
    (folder / "BoolQ").mkdir()
    for split in ("train", "dev", "test"):
        _, *lines = (folder / "MRPC" / f"{split}.tsv").read_text().splitlines()
        header = "index\tquestion\tpassage" if split == "test" else "question\tpassage\tanswer"
        rows = [header]
        for line in lines:
            first, _, _, *texts = line.split("\t")
            rows.append(
                "\t".join([first, *texts] if split == "test" else [*texts, str(first == "1")])
            )
        (folder / "BoolQ" / f"{split}.tsv").write_text("\n".join(rows) + "\n")


def test_the_head_learns(page):
    _, names = page
    assert names["results"]["micro_f1"] > 0.8  # Of five labels; the base is random.


def test_the_head_computes_the_same_from_given_weights(page):
    _, names = page
    inputs = names["inputs"]
    expected = names["model"].model("subjects")(inputs, training=False)
    again = abt.AdapterModel(names["base"])
    again.load_adapter("subjects")
    np.testing.assert_allclose(again(inputs, adapter="subjects"), expected, atol=1e-5)


def test_the_head_serves(page):
    _, names = page
    answer = {name: value.numpy() for name, value in names["answer"].items()}
    assert answer["topics"].tolist() == [[b"animals", b"weather"]]
    logits = names["model"](inputs_of(names, "a cat in the sun"), adapter="subjects")
    np.testing.assert_allclose(answer["probabilities"], tf.sigmoid(logits), atol=1e-5)


def test_the_head_is_joined(page):
    folder, names = page
    folders = [str(folder / "subjects"), str(folder / "mood")]
    assert join(folders, names["base"], str(folder / "all")) == ["subjects", "mood", "tasks"]


def test_the_registries_know_what_the_page_added(page):
    assert "scaling" in registry.MODULE_KINDS and "topics" in TASK_TYPES
