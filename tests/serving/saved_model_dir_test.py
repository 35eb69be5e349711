"""What a SavedModel may be written over: one of ours, and nothing that holds anything else."""

import json
import os
import pathlib
import shutil

import pytest
import tensorflow as tf

from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.serve import main
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.serving.saved_model_dir import MARKER, SavedModelDir
from adapter_bert_tf.task_types import TASK_TYPES
from tests import support
from tests.refusals import raises_code

pytestmark = pytest.mark.long


def export(base_folder, folder, head="classification", labels=("no", "yes"), **inputs):
    base = load_base(base_folder)
    kind = "regression" if not labels else head
    model = TASK_TYPES[kind].new_model(base.build_encoder(), len(labels) or 1)
    inputs = dict(TASK_TYPES[head].inputs) | inputs
    config = support.adapter_config(base, None, "full", labels, head=head, inputs=inputs)
    export_task(str(folder), model, config, base.vocabulary)


@pytest.fixture(scope="module")
def written(tiny_base_folder, tmp_path_factory):
    """A folder with a SavedModel of each kind."""
    folder = tmp_path_factory.mktemp("written")
    export(tiny_base_folder, folder / "classes")
    export(tiny_base_folder, folder / "score", labels=(), texts=2)
    sizes = {"max_seq_length": 24, "max_query_length": 9}
    export(tiny_base_folder, folder / "span", "span", ("start", "end"), **sizes)
    model = AdapterModel(load_base(tiny_base_folder))
    for name, labels in (("a", ["0", "1"]), ("b", [])):
        model.add_adapter(name, labels, max_seq_length=16)
        model.save_adapter(name, folder / "adapters" / name)
    adapters = [str(folder / "adapters" / name) for name in "ab"]
    base = f"--base_model={tiny_base_folder}"
    assert main([*adapters, f"--output={folder / 'joined'}", base]) == 0
    return folder


def test_what_a_replacement_leaves_out_is_said(written, tiny_base_folder, tmp_path, capsys):
    folder = shutil.copytree(written / "joined", tmp_path / "model")
    assert list(SavedModelDir(str(folder)).signatures()) == ["a", "b", "tasks"]
    base = f"--base_model={tiny_base_folder}"
    for names, gone in (("ab", ""), ("b", "Removed signatures: a\n"), ("b", "")):
        adapters = [str(written / "adapters" / name) for name in names]
        assert main([*adapters, f"--output={folder}", base]) == 0
        printed = capsys.readouterr().out
        assert gone in printed and ("Removed signatures" in printed) == bool(gone)
    assert SavedModelDir(str(tmp_path / "none")).signatures() == {}


def test_what_comes_to_be_there_while_it_is_made(tiny_base_folder, tmp_path, monkeypatch):
    save, folder = tf.saved_model.save, tmp_path / "model"

    def late(*arguments, **more):
        save(*arguments, **more)
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")

    monkeypatch.setattr(tf.saved_model, "save", late)
    with raises_code("occupied", "'mine.txt'"):
        export(tiny_base_folder, folder)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["mine.txt", "model"]


@pytest.fixture
def model(written, tmp_path):
    """A copy of a SavedModel of ours."""
    return pathlib.Path(shutil.copytree(written / "classes", tmp_path / "model"))


@pytest.mark.parametrize("kind", ["classes", "score", "span", "joined"])
def test_ours_is_known_with_a_marker_and_without_one(kind, written, tmp_path):
    folder = shutil.copytree(written / kind, tmp_path / "model")
    SavedModelDir(str(folder)).require_replaceable()
    (folder / MARKER).unlink()  # As SavedModels were before there was a marker.
    SavedModelDir(str(folder)).require_replaceable()
    SavedModelDir(str(folder)).mark_earlier()
    assert (folder / MARKER).read_bytes() == (written / kind / MARKER).read_bytes()


def test_the_model_of_a_run_is_that_runs_to_replace(model, written, tiny_base_folder, capsys):
    record = model.parent / "run.json"
    record.write_text(json.dumps({"results": {"saved_model": SavedModelDir(str(model)).state()}}))
    for path in (f"{model}", f"{model}/"):
        with raises_code("occupied"):
            SavedModelDir(path).require_not_a_result()
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    joined = [str(written / "adapters" / "a"), f"--output={model}"]
    assert main([*joined, f"--base_model={tiny_base_folder}"]) == 1
    assert "is the SavedModel of the run in" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    SavedModelDir(str(model)).require_not_a_result(own=str(model.parent))


@pytest.mark.parametrize(
    "said",
    ["", "[]", "{}", '{"results": []}', '{"results": {}}', '{"results": {"saved_model": 1}}'],
)
def test_a_run_that_has_left_another_model_or_says_nothing(said, model):
    (model.parent / "run.json").write_text(said)
    for folder in (model, model.parent / "new"):
        assert SavedModelDir(str(folder)).require_not_a_result() is None


def test_a_replacement_is_said(tiny_base_folder, tmp_path, caplog):
    for times in (0, 1):
        export(tiny_base_folder, tmp_path / "model")
        said = [r for r in caplog.records if "SavedModel is replaced" in r.getMessage()]
        assert len(said) == times


FOREIGN = {
    "notes.txt": lambda folder: (folder / "notes.txt").write_text("x"),
    "assets/notes.txt": lambda folder: (folder / "assets" / "notes.txt").write_text("x"),
    "thesis": lambda folder: (folder / "thesis").mkdir(),
    "link": lambda folder: (folder / "link").symlink_to(folder.parent),
    "variables/mine.index": lambda folder: (folder / "variables" / "mine.index").write_text("x"),
}


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("case", FOREIGN)
def test_what_is_foreign_in_it_is_named_and_stays(case, marked, model):
    FOREIGN[case](model)
    if not marked:
        (model / MARKER).unlink()
    before = sorted(model.rglob("*"))
    with raises_code("occupied", case):
        SavedModelDir(str(model)).require_replaceable()
    assert sorted(model.rglob("*")) == before


def theirs(folder):
    """A SavedModel that somebody else wrote."""
    module = tf.Module()
    module.v = tf.Variable(1.0)
    run = tf.function(lambda x: {"y": x * module.v}, [tf.TensorSpec([], name="x")])
    tf.saved_model.save(module, str(folder), signatures=run.get_concrete_function())


def test_a_model_of_somebody_else_is_not_replaced(model, tmp_path):
    theirs(tmp_path / "theirs")
    theirs(model)  # Into a folder that was ours.
    for folder in (tmp_path / "theirs", model):
        with raises_code("occupied", "'assets'"):
            SavedModelDir(str(folder)).require_replaceable()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "saved_model.pb").write_bytes(b"\xff\xff")
    with raises_code("occupied", "'saved_model.pb'"):
        SavedModelDir(str(broken)).require_replaceable()


def test_a_copy_that_was_cut_short_is_replaced(model):
    """To a store the marker is copied first and `saved_model.pb` last."""
    for name in ("saved_model.pb", "variables/variables.index", "fingerprint.pb"):
        (model / name).unlink()
        assert SavedModelDir(str(model)).require_replaceable() is None


@pytest.mark.parametrize("marker", ["", "[]", '{"files": 1}', '{"files": ["a"]}', "[" * 100_000])
def test_a_damaged_marker_is_no_marker(marker, model):
    (model / MARKER).write_text(marker)
    with raises_code("occupied"):
        SavedModelDir(str(model)).require_replaceable()


def test_the_marker_is_in_nobodys_way(written):
    assert tf.saved_model.load(str(written / "classes")).signatures["ids"]


def test_joining_refuses_before_any_work(written, tiny_base_folder, tmp_path, capsys):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "saved_model.pb").write_text("x")
    output, base = f"--output={tmp_path / 'thesis'}", f"--base_model={tiny_base_folder}"
    assert main([str(written / "adapters" / "a"), output, base]) == 1
    assert "will not be replaced" in capsys.readouterr().err
    assert os.listdir(tmp_path / "thesis") == ["saved_model.pb"]
    (tmp_path / "current").symlink_to("thesis")
    output = f"--output={tmp_path / 'current'}"
    assert main([str(written / "adapters" / "a"), output, base]) == 1
    assert "symbolic link" in capsys.readouterr().err
    assert os.listdir(tmp_path / "thesis") == ["saved_model.pb"]
