"""A run is known by what it read and left, not by the names of its files."""

import json
import shutil
import types

import pytest

from adapter_bert_tf.output import output_dir
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.run.fingerprint import content_of, decisive
from adapter_bert_tf.run.output_contents import contents_of
from tests import support
from tests.runs import train, try_to_train, write_mrpc

pytestmark = pytest.mark.long

ONE_EPOCH = "--num_train_epochs=1"


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC")


@pytest.fixture
def base(tmp_path):
    support.write_google(tmp_path / "base")
    return tmp_path / "base"


def change_base(base, adapter):
    weights = support.random_weights(support.CONFIG)
    support.write_google(base, {name: 1.5 * value for name, value in weights.items()})


def change_adapter(base, adapter):
    adapter.write_text('{"bottleneck_size": 8}')


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("change", "named"),
    [(change_base, "base"), pytest.param(change_adapter, "adapter", marks=pytest.mark.slow)],
)
def test_another_content_under_the_same_name_is_another_run(
    change, named, finished, mrpc, base, tmp_path
):
    adapter = tmp_path / "adapter.json"
    adapter.write_text('{"bottleneck_size": 4}')
    out = train(mrpc, base, tmp_path / "out", ONE_EPOCH, f"--adapter={adapter}")
    if not finished:
        (out / "run.json").unlink()
    change(base, adapter)
    error = try_to_train(mrpc, base, out, ONE_EPOCH, f"--adapter={adapter}")
    assert f"a run whose {named} had another content" in error


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        (("--keep=best",), True),
        pytest.param(("--patience=3",), True, marks=pytest.mark.slow),
        (("--keep=last",), False),
    ],
)
def test_weights_are_chosen_by_one_dev_set(more, refused, mrpc, base, tmp_path):
    """The best score on other examples would stay the one to beat."""
    flags = (ONE_EPOCH, "--do_eval", "--eval_every_steps=2", *more)
    out = train(mrpc, base, tmp_path / "out", *flags)
    (out / "run.json").unlink()
    lines = (mrpc / "dev.tsv").read_text().splitlines()
    (mrpc / "dev.tsv").write_text("\n".join(lines[:-4]) + "\n")
    error = try_to_train(mrpc, base, out, *flags) or ""
    assert ("a run whose development data had another content" in error) == refused
    owner = out / "checkpoints" / "flags.json"
    record = json.loads(owner.read_text())  # Those of earlier versions did not say it.
    record["made of"].pop("development data", None)
    owner.write_text(json.dumps(record))
    assert try_to_train(mrpc, base, out, *flags) is None


@pytest.mark.parametrize(
    "lost",
    support.seldom(
        ["eval_results.txt", "adapter/adapter.safetensors", "adapter"],
        ("eval_results.txt", "adapter"),
    ),
)
def test_a_run_without_its_results_is_not_finished(lost, mrpc, base, tmp_path, capsys):
    out = train(mrpc, base, tmp_path / "out", ONE_EPOCH, "--do_eval")
    path = out / lost
    before = sorted(str(found) for found in out.rglob("*"))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    train(mrpc, base, out, ONE_EPOCH, "--do_eval")
    assert "this very run" not in capsys.readouterr().out
    assert [name for name in before if "tfevents" not in name] == sorted(
        str(found) for found in out.rglob("*") if "tfevents" not in str(found)
    )


def test_where_it_runs_is_no_other_run(mrpc, base, tmp_path, capsys):
    out = train(mrpc, base, tmp_path / "out", ONE_EPOCH, "--tpu_name=a")
    train(f"{mrpc}/", base, out, ONE_EPOCH, "--tpu_name=b", "--tpu_zone=c")
    assert "holds the results of this very run" in capsys.readouterr().out


def test_clearing_that_was_cut_short_looks_never_like_an_interrupted_run(tmp_path, monkeypatch):
    """An interrupted run has `flags.json` and no `run.json`, and is gone on with."""
    names = (
        "run.json",
        "eval_results.txt",
        "checkpoints/flags.json",
        "checkpoints/ckpt-8.index",
        "checkpoints/checkpoint",
        "adapter/adapter_config.json",
    )
    remove, left = output_dir.storage.remove, 0

    def remove_some(path):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        remove(path)

    monkeypatch.setattr(output_dir.storage, "remove", remove_some)
    for cut_after in range(len(names)):
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(json.dumps({}))
        left = cut_after
        try:
            OutputDir(str(tmp_path), contents_of()).clear()
        except KeyboardInterrupt:
            begun, done = ((tmp_path / name).exists() for name in (names[2], names[0]))
            assert done or not begun, cut_after
    assert not (tmp_path / "run.json").exists()


def test_identity_ignores_a_trailing_slash():
    assert decisive({"data_dir": "a/", "delimiter": "/"}) == {
        "data_dir": "a",
        "delimiter": "/",
    }


def test_content_reads_back_as_it_is_written():
    data = types.SimpleNamespace(
        name="a", record=lambda: {"data_sha256": {"train": "1"}, "labels": ("a",)}
    )
    base = types.SimpleNamespace(fingerprint=lambda: {"hidden_size": 4})
    made_of = content_of((data,), base, types.SimpleNamespace(adapter=None))
    assert json.loads(json.dumps(made_of)) == made_of and made_of["adapter"] is None


def test_the_content_of_several_tasks_has_a_digest_of_each():
    tasks = [
        types.SimpleNamespace(name=name, record=lambda s=splits: {"data_sha256": s})
        for name, splits in (("a", {"train": "1", "dev": "2"}), ("b", {"train": "3"}))
    ]
    base = types.SimpleNamespace(fingerprint=lambda: {})
    made_of = content_of(tasks, base, types.SimpleNamespace(adapter=None))
    assert made_of["data_sha256"] == {
        "train": {"a": "1", "b": "3"},
        "dev": {"a": "2", "b": None},
    }
    assert list(made_of["tasks"]) == ["a", "b"]
