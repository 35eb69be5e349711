"""`--frozen_layers` and `--cache_frozen`, by the command."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.training.progress import Progress
from tests.runs import base_flags, command, write_mrpc

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


def run(mrpc, base, out, *more):
    return command(
        "--task_name=mrpc",
        "--do_train",
        "--do_eval",
        f"--data_dir={mrpc}",
        *base_flags(base),
        "--max_seq_length=16",
        "--train_batch_size=8",
        "--learning_rate=1e-2",
        f"--output_dir={out}",
        *more,
    )


def left(out):
    """(config, weights, results) of a run."""
    record = json.loads((out / "run.json").read_text())
    config = json.loads((out / "adapter/adapter_config.json").read_text())
    return config, safetensors.numpy.load_file(out / "adapter/adapter.safetensors"), record["eval"]


@pytest.fixture(scope="module")
def runs(mrpc, tiny_base_folder, tmp_path_factory):
    """The folders of two runs with frozen layers: computed in every step, and once."""
    out = tmp_path_factory.mktemp("out")
    for name, more in {"each step": [], "once": ["--cache_frozen"]}.items():
        assert run(mrpc, tiny_base_folder, out / name, "--frozen_layers=1", *more) is None
    return out


def test_what_the_lowest_layers_have_is_the_bases(runs):
    config, weights, _ = left(runs / "each step")
    assert config["tuning"]["frozen_layers"] == 1 and config["adapter"]["layers"] == [1]
    assert "adapters/layer_1/attention/down_kernel" in weights
    assert "| Frozen layers | the lowest 1 |" in (runs / "each step/adapter/README.md").read_text()
    assert not any("layer_0" in name or "embeddings" in name for name in weights)


def test_to_compute_them_once_changes_nothing(runs, mrpc, tiny_base_folder):
    (_, weights, results), (_, kept, again) = (left(runs / name) for name in ("each step", "once"))
    for name, value in weights.items():
        np.testing.assert_allclose(kept[name], value, atol=1e-4, err_msg=name)
    assert again == pytest.approx(results, abs=1e-4)


def test_an_adapter_of_upper_layers_is_applied_as_any(runs, mrpc, tiny_base_folder, tmp_path):
    more = [f"--adapter_dir={runs}/once/adapter", "--nodo_train"]
    assert run(mrpc, tiny_base_folder, tmp_path / "out", *more) is None
    found = json.loads((tmp_path / "out/run.json").read_text())["eval"]
    assert found == pytest.approx(left(runs / "once")[2], abs=1e-6)


@pytest.mark.slow
def test_a_run_that_goes_on_ends_with_the_same_bytes(
    runs, mrpc, tiny_base_folder, tmp_path, monkeypatch
):
    flags = ["--frozen_layers=1", "--cache_frozen", "--save_checkpoints_steps=3"]
    flush = Progress.on_train_batch_end

    def stop_at_seven(progress, batch, logs=None):
        flush(progress, batch, logs)
        if progress.step == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "on_train_batch_end", stop_at_seven)
        assert run(mrpc, tiny_base_folder, tmp_path / "out", *flags) == "130"
    shutil.copytree(tmp_path / "out", tmp_path / "without")
    assert run(mrpc, tiny_base_folder, tmp_path / "out", *flags) is None
    assert json.loads((tmp_path / "out/run.json").read_text())["resumed_from_step"] == 6
    for name, value in left(runs / "once")[1].items():
        np.testing.assert_array_equal(left(tmp_path / "out")[1][name], value, err_msg=name)
    # Where there is no more room for what is kept, it goes on without.
    assert run(mrpc, tiny_base_folder, tmp_path / "without", flags[0], flags[2]) is None
    assert json.loads((tmp_path / "without/run.json").read_text())["resumed_from_step"] == 6
    assert left(tmp_path / "without")[2] == pytest.approx(left(runs / "once")[2], abs=1e-4)


def test_it_is_said_that_nothing_is_kept_without_training(runs, mrpc, tiny_base_folder, caplog):
    more = [f"--adapter_dir={runs}/once/adapter", "--nodo_train", "--cache_frozen", "--dry_run"]
    with caplog.at_level("WARNING"):
        assert run(mrpc, tiny_base_folder, runs / "asked", *more) is None
    assert "--cache_frozen=True has no effect without --do_train." in caplog.text


def test_an_adapter_to_begin_from_says_what_is_frozen(runs, mrpc, tiny_base_folder, tmp_path):
    more = [f"--init_from={runs}/once/adapter", "--frozen_layers=0"]
    message = run(mrpc, tiny_base_folder, tmp_path / "out", *more)
    assert "--frozen_layers=0" in message and "the lowest 1 layers frozen" in message


WRONG = {
    "none is frozen": (["--cache_frozen"], "no layer is frozen. Add --frozen_layers=N"),
    "all are": (["--frozen_layers=2"], "--frozen_layers must be 0 to 1"),
    "adapters there": (
        ["--frozen_layers=1", "--adapter_layers=0-1"],
        "--adapter_layers puts adapters into layers 0, 1, but --frozen_layers=1",
    ),
    "adapters there, by a file": (
        ["--frozen_layers=1", "--adapter={file}"],
        "adapter.json puts adapters into layers 0, 1, but --frozen_layers=1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_said(case, mrpc, tiny_base_folder, tmp_path):
    more, message = WRONG[case]
    file = tmp_path / "adapter.json"
    file.write_text(json.dumps({"layers": [0, 1]}))
    given = [flag.format(file=file) for flag in more]
    assert message in run(mrpc, tiny_base_folder, tmp_path / "out", *given)
