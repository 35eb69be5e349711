"""An adapter says which run wrote it, and no other run replaces it."""

import json
import pathlib
import re

import pytest
from absl import flags

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.config.sections.command import OutputConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.output.records import as_compared
from adapter_bert_tf.output.run_dir import RunDir, require_own_adapter
from adapter_bert_tf.run.fingerprint import fingerprint_of, run_digest
from adapter_bert_tf.run.output_contents import run_dir
from adapter_bert_tf.store.adapter_dir import AdapterDir
from adapter_bert_tf.store.directory import CONFIG, copy_adapter, load_adapter
from tests.refusals import raises_code
from tests.runs import train, try_to_train, write_mrpc

HALF = "--num_train_epochs=0.5"
CONTENT = {"data_sha256": {"train": "1", "dev": "2"}, "base": {"hidden_size": 16}, "adapter": None}


@pytest.fixture(scope="module")
def saved(tiny_base_folder, tmp_path_factory):
    """An adapter directory that says of no run."""
    folder = tmp_path_factory.mktemp("saved") / "adapter"
    model = AdapterModel(load_base(tiny_base_folder))
    model.add_adapter("a", ["0", "1"], AdapterConfig(4))
    model.save_adapter("a", folder)
    return folder


def run_of(folder):
    return AdapterDir(folder).run()


def flags_of(*arguments, out="out"):
    values = flags.FlagValues()
    define_flags(Command.CLASSIFIER, values)
    values(["run_classifier", "--do_train", f"--output_dir={out}", *arguments])
    return config_of(values)


def folder_of(*arguments, content=CONTENT, out="out", adapter_dir=None):
    run = fingerprint_of(flags_of(*arguments, out=out), content)
    place = adapter_dir or pathlib.Path(out) / "adapter"
    return run_dir(OutputConfig(str(out), adapter_dir=str(place)), run)


COMPARED = {  # The same in different words, and something else.
    "init_from": ("run", "run/", "run/adapter", "run/adapter/"),
    "fuse": ("a=x,y/adapter", "a=x/adapter, y/"),
    "output_dir": ("out", "out/"),
    "seed": (3,),
}


@pytest.mark.parametrize("name", COMPARED)
def test_how_settings_are_compared(name):
    values = [as_compared(name, value) for value in COMPARED[name]]
    assert len(set(values)) == 1
    assert as_compared(name, "run/other") != values[0]
    assert as_compared("output_dir", "out/adapter") != as_compared("output_dir", "out")


SAME = {
    "paths": ("--data_dir=d", "--base_model=b", "--adapter_dir=a", "--adapter=pfeiffer.json"),
    "where and how fast": ("--tpu_name=t", "--eval_batch_size=3", "--overwrite", "--do_eval"),
    "what is the default": ("--seed=0", "--num_train_epochs=3", "--tuning=adapters"),
}
OTHER = {
    "the seed": ("--seed=1",),
    "the method": ("--tuning=head",),
    "the rounding": ("--adapter_dtype=float16",),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_run(case):
    assert folder_of(*SAME[case]).run.run_id == folder_of().run.run_id


@pytest.mark.parametrize("case", OTHER)
def test_another_run(case):
    assert folder_of(*OTHER[case]).run.run_id != folder_of().run.run_id


@pytest.mark.parametrize(
    "change",
    [
        {"data_sha256": {"train": "3"}},
        {"base": {"hidden_size": 8}},
        {"adapter": {"bottleneck_size": 4}},
        {"init_from": "5"},
    ],
    ids=str,
)
def test_another_content_is_another_run(change):
    assert folder_of(content=CONTENT | change).run.run_id != folder_of().run.run_id
    seen = folder_of(content=CONTENT | {"data_sha256": {"train": "1", "dev": "9"}})
    assert seen.run.run_id == folder_of().run.run_id


EXPORTED = [  # How a finished run exported, how this one does, whether they are the same.
    (("--do_export", "--merge"), ("--do_export", "--merge"), True),
    (("--do_export", "--merge"), ("--do_export", "--nomerge"), False),
    (("--do_export",), ("--do_export", "--merge"), False),
    (("--do_export", "--merge"), (), True),
    ((), ("--do_export",), False),
]


@pytest.mark.parametrize(("then", "now", "same"), EXPORTED)
def test_a_merged_model_is_another(then, now, same):
    measured = {"train_seconds": 1.0, "examples_per_second": 1.0}
    counts = {"parameters": {"trained": 1, "total": 2}}
    record = {"flags": flags_of(*then).values, **CONTENT, **measured, **counts}
    assert fingerprint_of(flags_of(*now), CONTENT).is_recorded_in(record) is same


def test_a_flag_that_is_younger_changes_nothing():
    run, flags_now = folder_of().run, flags_of()
    older = {name: value for name, value in flags_now.values.items() if name != "patience"}
    assert run_digest(older, run.defaults, run.read) == run.run_id


def test_its_own_adapter_is_replaced_wherever_it_is(saved, tmp_path):
    folder = folder_of(out=tmp_path / "out", adapter_dir=tmp_path / "mine")
    folder.require_own_adapter(overwrite=False)
    copy_adapter(str(saved), folder.adapter.path, folder.run.run_id)
    assert folder.adapter.run() == folder.run.run_id
    folder.require_own_adapter(overwrite=False)
    folder.require_own_adapter_still(overwrite=False)


@pytest.mark.parametrize("run", ["another", None])
def test_another_adapter_is_not_replaced(run, saved, tmp_path):
    elsewhere = folder_of(out=tmp_path / "out", adapter_dir=tmp_path / "theirs")
    own_place = folder_of(out=tmp_path / "out")
    for folder in (elsewhere, own_place):
        write(saved, folder.adapter.path, run)
    for overwrite in (True, False):
        with raises_code("occupied", "--init_from"):
            elsewhere.require_own_adapter(overwrite)
        with raises_code("occupied", "move the other adapter away"):
            elsewhere.require_own_adapter_still(overwrite)
    own_place.require_own_adapter(overwrite=True)
    with raises_code("occupied", "--overwrite"):
        own_place.require_own_adapter(overwrite=False)


def write(saved, folder, run):
    """An adapter that says of a run, or was written before adapters did."""
    copy_adapter(str(saved), folder, run or "")
    if run is None:
        (pathlib.Path(folder) / CONFIG).write_bytes((saved / CONFIG).read_bytes())


def test_an_older_one_is_the_runs_whose_checkpoints_are_beside_it(saved, tmp_path):
    elsewhere = folder_of(out=tmp_path / "out", adapter_dir=tmp_path / "theirs")
    own_place = folder_of(out=tmp_path / "out")
    for folder in (elsewhere, own_place):
        write(saved, folder.adapter.path, None)
    own_place.start_training()
    own_place.require_own_adapter(overwrite=False)
    with raises_code("occupied", "--adapter_dir"):
        elsewhere.require_own_adapter(overwrite=True)
    write(saved, own_place.adapter.path, "another")
    with raises_code("occupied", "--overwrite"):
        own_place.require_own_adapter(overwrite=False)


def test_its_own_place_may_be_behind_a_link(saved, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    for name in ("adapter", "adapter2"):
        write(saved, f"{tmp_path}/disk/{name}", "another")
    adapters = [AdapterDir(f"{tmp_path}/disk/{name}") for name in ("adapter", "adapter2")]
    require_own_adapter(adapters[0], f"{tmp_path}/out/", "run", (), overwrite=True)
    with raises_code("occupied", "--adapter_dir"):
        require_own_adapter(adapters[1], f"{tmp_path}/out/", "run", (), overwrite=True)


def test_a_run_of_a_config_must_be_a_string(saved, tmp_path):
    copy_adapter(str(saved), str(tmp_path / "a"), 7)
    assert run_of(str(tmp_path / "a")) is None
    with raises_code("damaged", "'run'"):
        load_adapter(str(tmp_path / "a"))


def test_what_python_saves_is_of_no_run(saved, tiny_base_folder, tmp_path):
    copy_adapter(str(saved), str(tmp_path / "a"), "some")
    model = AdapterModel(load_base(tiny_base_folder))
    model.load_adapter(tmp_path / "a")
    model.save_adapter("a", tmp_path / "b")
    assert (run_of(str(tmp_path / "a")), run_of(str(tmp_path / "b"))) == ("some", None)


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_runs_that_write_to_one_folder(tiny_base_folder, tmp_path, capsys):
    """The first keeps it: a run, the same again, another one, and a sweep."""
    mrpc, place = write_mrpc(tmp_path / "MRPC"), tmp_path / "best"
    to = f"--adapter_dir={place}"
    first = train(mrpc, tiny_base_folder, tmp_path / "1", HALF, to)
    before, run = tree(place), run_of(str(place))
    for more in ([], ["--overwrite"], ["--do_eval", "--num_trials=2"]):
        out = tmp_path / "2"
        error = try_to_train(mrpc, tiny_base_folder, out, HALF, "--seed=1", to, *more)
        assert re.search(r"another run, which is not replaced.*--init_from=.*best", error)
        assert tree(place) == before and not (out / "checkpoints").exists()
    (first / "run.json").unlink()  # As if it had been killed at its end.
    train(mrpc, tiny_base_folder, first, HALF, to)
    assert tree(place).keys() == before.keys() and run_of(str(place)) == run
    capsys.readouterr()
    train(mrpc, tiny_base_folder, first, HALF, to)
    assert "this very run" in capsys.readouterr().out
    copy_adapter(str(place), str(place), "another")
    error = try_to_train(mrpc, tiny_base_folder, first, HALF, to)
    assert "another run, which is not replaced" in error
    config = json.loads((place / CONFIG).read_text())
    assert config["run"] == "another"


@pytest.mark.long
def test_a_sweep_replaces_its_own(tiny_base_folder, tmp_path):
    mrpc, place = write_mrpc(tmp_path / "MRPC"), tmp_path / "best"
    trials = [HALF, "--do_eval", f"--adapter_dir={place}"]
    out = train(
        mrpc, tiny_base_folder, tmp_path / "out", *trials, "--num_trials=1", sweep(tmp_path)
    )
    run = run_of(str(place))
    train(mrpc, tiny_base_folder, out, *trials, "--num_trials=2", sweep(tmp_path))  # One more seed.
    assert run_of(str(place)) == run == json.loads((out / "run.json").read_text())["run"]
    assert run not in {run_of(str(path.parent)) for path in out.rglob(CONFIG)}
    copy_adapter(str(place), str(place), "another")
    error = try_to_train(mrpc, tiny_base_folder, out, *trials, "--num_trials=2", sweep(tmp_path))
    assert "another run, which is not replaced" in error


@pytest.mark.long
def test_an_adapter_that_comes_while_a_run_trains_stays(
    saved, tiny_base_folder, tmp_path, monkeypatch
):
    """And the run has lost nothing: it ends where the other is moved away."""
    mrpc, place = write_mrpc(tmp_path / "MRPC"), tmp_path / "best"
    start = RunDir.start_training

    def and_then_another_comes(folder):
        start(folder)
        copy_adapter(str(saved), folder.adapter.path, "another")

    arguments = (mrpc, tiny_base_folder, tmp_path / "out", HALF, f"--adapter_dir={place}")
    with monkeypatch.context() as patch:
        patch.setattr(RunDir, "start_training", and_then_another_comes)
        error = try_to_train(*arguments)
    assert re.search(r"move the other adapter away", error)
    assert (place / "adapter.safetensors").read_bytes() == (
        saved / "adapter.safetensors"
    ).read_bytes()
    place.rename(tmp_path / "theirs")
    train(*arguments)
    assert run_of(str(place)) not in (None, "another")


def sweep(folder):
    (folder / "grid.yaml").write_text("adapter_size: [2]\n")
    return f"--sweep={folder}/grid.yaml"


def test_a_link_is_refused_before_anything_starts(tiny_base_folder, tmp_path):
    mrpc = write_mrpc(tmp_path / "MRPC")
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "thesis.txt").write_text("x")
    (tmp_path / "current").symlink_to("v1")
    for place in ("adapter_dir", "export_dir"):
        more = [HALF, f"--{place}={tmp_path}/current", "--do_export"]
        for several in ([], ["--do_eval", "--num_trials=2"]):
            error = try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *more, *several)
            assert re.search(r"current' is a symbolic link to .*v1'.*remove the link", error)
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "v1").iterdir()] == ["thesis.txt"]


def test_an_output_folder_may_be_a_link(tiny_base_folder, tmp_path):
    mrpc = write_mrpc(tmp_path / "MRPC")
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    for more in ([], ["--overwrite"]):
        train(mrpc, tiny_base_folder, tmp_path / "out", HALF, *more)
    assert (tmp_path / "out").is_symlink() and (tmp_path / "disk" / "adapter").exists()
