"""Folders that are in each other's way are found before anything starts."""

import pathlib

import pytest
from absl import flags

from adapter_bert_tf import storage
from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.run.checks import path_conflicts
from tests.refusals import raises_code
from tests.runs import try_to_train, write_mrpc

TRAIN, EVAL, EXPORT = "--do_train", "--do_eval", "--do_export"


def check(*arguments, of=Command.CLASSIFIER, runs=(), patterns=("predictions.json",)):
    values = flags.FlagValues()
    define_flags(of, values)
    values([of.value, *arguments])
    run_flags = config_of(values)
    path_conflicts.check(run_flags, patterns, runs)


BAD = {
    "the adapter is the output": (TRAIN, "--output_dir=o", "--adapter_dir=o"),
    "the export is the output": (EVAL, EXPORT, "--output_dir=o", "--export_dir=./o/"),
    "the output is in the adapter": (TRAIN, "--output_dir=o/run", "--adapter_dir=o"),
    "the output is in the export": (TRAIN, EXPORT, "--output_dir=o/run", "--export_dir=o"),
    "adapter and export": (TRAIN, EXPORT, "--output_dir=o", "--adapter_dir=a", "--export_dir=a"),
    "the export is in the adapter": (TRAIN, EXPORT, "--output_dir=o", "--export_dir=o/adapter/x"),
    "the adapter is in the export": (
        TRAIN,
        EXPORT,
        "--output_dir=o",
        "--adapter_dir=o/saved_model/x",
    ),
    "the adapter is the checkpoints": (TRAIN, "--output_dir=o", "--adapter_dir=o/checkpoints"),
    "the export is in the checkpoints": (
        *(TRAIN, EXPORT, "--output_dir=o"),
        "--export_dir=o/checkpoints/model",
    ),
    "the checkpoints are in the adapter": (TRAIN, "--output_dir=a/b/o", "--adapter_dir=a"),
    "the adapter is the data": (TRAIN, "--output_dir=o", "--adapter_dir=d", "--data_dir=d"),
    "the data is in the adapter": (TRAIN, "--output_dir=o", "--adapter_dir=d", "--data_dir=d/e"),
    "the export is the base": (EXPORT, "--output_dir=o", "--export_dir=b", "--base_model=b"),
    "the weights are in the export": (
        *(EXPORT, "--output_dir=o", "--export_dir=b"),
        "--init_checkpoint=b/bert_model.ckpt",
    ),
    "the export is the adapter read": (
        EXPORT,
        "--output_dir=o",
        "--adapter_dir=a",
        "--export_dir=a",
    ),
    "the export is in the adapter read": (
        *(EXPORT, "--output_dir=o"),
        *("--adapter_dir=a", "--export_dir=a/model"),
    ),
    "the adapter is its start": (TRAIN, "--output_dir=o", "--adapter_dir=a", "--init_from=a"),
    "the default adapter is its start": (TRAIN, "--output_dir=o", "--init_from=o/adapter"),
    "the output is in the start": (TRAIN, "--output_dir=a/o", "--init_from=a"),
    "the output is the start": (TRAIN, "--output_dir=a", "--init_from=a"),
    "the start is in the export": (
        *(TRAIN, EXPORT, "--output_dir=o"),
        *("--init_from=e/a", "--export_dir=e"),
    ),
    "the data is in the checkpoints": (TRAIN, "--output_dir=o", "--data_dir=o/checkpoints/d"),
    "in a bucket": (TRAIN, "--output_dir=gs://b/o/", "--adapter_dir=gs://b//o"),
    "in a bucket, above": (TRAIN, "--output_dir=gs://b/o/p", "--adapter_dir=gs://b/o"),
}
BAD_OF_SQUAD = {
    "the adapter is the windows": (TRAIN, "--output_dir=o", "--adapter_dir=o/features"),
    "the export is in the windows": (
        *(EXPORT, "--output_dir=o", "--features_dir=f"),
        "--export_dir=f/model",
    ),
    "the windows are in the export": (
        *(EXPORT, "--output_dir=o", "--features_dir=e/f"),
        "--export_dir=e",
    ),
    "the windows are the checkpoints": (TRAIN, "--output_dir=o", "--features_dir=o/checkpoints"),
    "the windows are in the start": (
        *(TRAIN, "--output_dir=o"),
        *("--features_dir=a/f", "--init_from=a"),
    ),
    "the questions are the answers": (
        *(EVAL, "--output_dir=o"),
        "--predict_file=o/predictions.json",
    ),
    "the questions are the record": (TRAIN, "--output_dir=o", "--train_file=o/run.json"),
}
GOOD = (
    (TRAIN, EXPORT, "--output_dir=o"),
    (TRAIN, EXPORT, "--output_dir=o", "--adapter_dir=o/a", "--export_dir=o/e"),
    (TRAIN, EXPORT, "--output_dir=o", "--adapter_dir=o/adapter2"),
    (TRAIN, "--output_dir=data/o", "--data_dir=data"),
    (TRAIN, "--output_dir=o", "--data_dir=o"),
    (EVAL, "--output_dir=a", "--adapter_dir=a"),
    (EVAL, "--output_dir=o", "--adapter_dir=o"),
    (EVAL, EXPORT, "--output_dir=o", "--adapter_dir=o/adapter"),
    (TRAIN, EXPORT, "--output_dir=gs://b/o", "--adapter_dir=gs://b/a", "--export_dir=gs://b/o/e"),
    (TRAIN, "--output_dir=o", "--init_from=p/adapter", "--adapter_dir=p/adapter2"),
)
GOOD_OF_SQUAD = (
    (TRAIN, EXPORT, "--output_dir=o"),
    (TRAIN, "--output_dir=o", "--features_dir=f"),
    (TRAIN, "--output_dir=o", "--features_dir=o"),
    (TRAIN, "--output_dir=f/o", "--features_dir=f"),
    (TRAIN, "--output_dir=o", "--train_file=o/train.json"),
)


@pytest.mark.parametrize(
    ("arguments", "of"),
    [(case, Command.CLASSIFIER) for case in BAD.values()]
    + [(case, Command.SQUAD) for case in BAD_OF_SQUAD.values()],
    ids=[*BAD, *BAD_OF_SQUAD],
)
def test_what_collides_is_refused(arguments, of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises_code("conflict"):
        check(*arguments, of=of)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["init_from", "fuse", "stack"])
def test_a_run_is_read_where_its_adapter_is(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("a/adapter").mkdir(parents=True)
    pathlib.Path("a/adapter/adapter_config.json").touch()
    for folder in ("a", "a/adapter"):
        check(TRAIN, "--output_dir=a/next", f"--{name}={folder}")
        with raises_code("conflict"):
            check(TRAIN, "--output_dir=a", f"--{name}={folder}")


@pytest.mark.parametrize("arguments", GOOD, ids=" ".join)
def test_what_does_not_collide_is_accepted(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(*arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", GOOD_OF_SQUAD, ids=" ".join)
def test_neither_do_these_of_questions(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(*arguments, of=Command.SQUAD)
    assert not list(tmp_path.iterdir())


def test_a_link_is_where_it_leads(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    with raises_code("conflict", "out/x"):
        check(TRAIN, EXPORT, f"--output_dir={tmp_path}/o", f"--adapter_dir={tmp_path}/link/x",
              f"--export_dir={tmp_path}/out/x")  # fmt: skip


@pytest.mark.parametrize("flag", ["adapter_dir", "export_dir"])
@pytest.mark.parametrize("place", ["o/seed=0", "o/seed=0/adapter", "o/seed=1/x"])
def test_the_runs_of_a_sweep_have_folders_of_their_own(flag, place):
    with raises_code("conflict", "of a run of the sweep"):
        check(TRAIN, EXPORT, "--output_dir=o", f"--{flag}={place}", runs=("o/seed=0", "o/seed=1"))
    check(TRAIN, EXPORT, "--output_dir=o", runs=("o/seed=0", "o/seed=1"))


def test_real_paths(tmp_path):
    assert storage.real("gs://b/a//c/") == "gs://b/a/c"
    assert storage.real(f"{tmp_path}/a/../b/") == str(tmp_path / "b")


@pytest.mark.parametrize("more", [(), ("--do_eval", "--num_trials=2")], ids=["a run", "a sweep"])
def test_a_command_says_it_before_anything_starts(more, tiny_base_folder, tmp_path, capsys):
    mrpc, out = write_mrpc(tmp_path / "MRPC"), tmp_path / "out"
    error = try_to_train(mrpc, tiny_base_folder, out, f"--adapter_dir={out}", *more)
    assert "--adapter_dir" in error and "--output_dir" in error
    assert not out.exists() and "step" not in capsys.readouterr().out
