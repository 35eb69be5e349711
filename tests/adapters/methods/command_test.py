"""Presets of methods as flags: trained, sized, saved, started from, predicted with."""

import json

import pytest

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.languages.stack import StackConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.methods.prefix import PrefixConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig
from tests.runners.multitask_test import run, write_cola
from tests.runs import base_flags, command, train, try_to_train, write_mrpc

OTHERS = ["lora", "ia3", "prefix", "compacter", "mam", "unipelt"]


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


def adapter_of(out):
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    return ModuleConfig.from_dict(config["adapter"])


@pytest.mark.parametrize(
    "preset", [pytest.param(n, marks=[pytest.mark.long] * (n != "lora")) for n in OTHERS]
)
def test_a_preset_is_trained_saved_and_loaded(preset, mrpc, tiny_base_folder, tmp_path):
    flags = [f"--adapter={preset}", "--num_train_epochs=1", "--do_eval", "--do_predict"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
    assert adapter_of(out) == PRESETS[preset].stored_config()
    again = tmp_path / "again"
    error = command(
        "--task_name=mrpc",
        f"--data_dir={mrpc}",
        "--do_eval",
        "--do_predict",
        *base_flags(tiny_base_folder),
        "--max_seq_length=16",
        f"--adapter_dir={out}/adapter",
        f"--output_dir={again}",
    )
    assert error is None
    for name in ("eval_results.txt", "MRPC.tsv"):
        assert (out / name).read_text() == (again / name).read_text()


def test_size_and_layers_and_a_start_from_it(mrpc, tiny_base_folder, tmp_path):
    flags = ["--adapter=lora", "--adapter_size=3", "--adapter_layers=1", "--num_train_epochs=0.5"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
    assert adapter_of(out) == PRESETS["lora"].adjusted(size=3, layers=(1,))
    start = f"--init_from={out}/adapter"
    train(mrpc, tiny_base_folder, tmp_path / "next", *flags, start)
    assert adapter_of(tmp_path / "next") == adapter_of(out)
    for wrong in ("--adapter_size=4", "--adapter=houlsby", "--adapter_layers=0-1"):
        error = try_to_train(mrpc, tiny_base_folder, tmp_path / "no", wrong, start)
        assert wrong in error


@pytest.mark.parametrize(
    ("flags", "rate"), [([], 5e-3), (["--learning_rate=2e-3"], 2e-3), (["--adapter=houlsby"], 1e-3)]
)
def test_a_method_has_a_learning_rate_of_its_own(
    flags, rate, mrpc, tiny_base_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(LoraConfig, "learning_rate", 5e-3)
    flags = ["--adapter=lora", "--num_train_epochs=0.5", *flags]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
    assert json.loads((out / "run.json").read_text())["learning_rate"] == rate


PLAIN_PREFIX = PrefixConfig(2, reparametrized=False)
RATES = {
    "none": (UnionConfig((PLAIN_PREFIX, AdapterConfig(2))), None),
    "of a member": (UnionConfig((PLAIN_PREFIX, GatedConfig(LoraConfig()))), 5e-3),
    "the lowest one": (UnionConfig((PrefixConfig(2), Ia3Config())), 3e-4),
    "of the upper one": (StackConfig(Ia3Config(), LoraConfig(), "a"), 5e-3),
    "of each task": (PerTaskConfig(LoraConfig(), ("a", "b")), 5e-3),
}


@pytest.mark.parametrize("case", RATES)
def test_the_learning_rate_of_several_methods(case, monkeypatch):
    monkeypatch.setattr(LoraConfig, "learning_rate", 5e-3)
    config, rate = RATES[case]
    assert config.learning_rate == rate


def test_the_presets_with_another_rate():
    rates = {name: config.learning_rate for name, config in PRESETS.items()}
    assert {name: rate for name, rate in rates.items() if rate} == {
        "ia3": 3e-3,
        "prefix": 3e-4,
        "mam": 3e-4,
        "unipelt": 3e-4,
    }


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glue")
    write_mrpc(folder / "MRPC")
    write_cola(folder / "CoLA")
    return folder


@pytest.mark.parametrize("preset", ["lora", "prefix"])
@pytest.mark.parametrize("tuning", ["multitask_adapters", "per_task_adapters"])
@pytest.mark.long
def test_several_tasks(tuning, preset, glue, tiny_base_folder, tmp_path):
    """Trained together, evaluated again from the files, and one task by itself."""
    common = (glue, tiny_base_folder)
    out, again, one = (tmp_path / name for name in ("out", "again", "one"))
    tasks, apply = "cola,mrpc", ("--do_eval", "--do_predict")
    method = (f"--tuning={tuning}", f"--adapter={preset}", "--adapter_size=3")
    error = run(*common, out, *method, "--do_train", "--num_train_epochs=2", *apply, tasks=tasks)
    assert error is None
    error = run(*common, again, f"--adapter_dir={out}/adapter", *apply, tasks=tasks)
    assert error is None
    assert (out / "eval_results.txt").read_text() == (again / "eval_results.txt").read_text()
    folder = f"--adapter_dir={out}/adapter/tasks/mrpc"
    error = run(glue / "MRPC", tiny_base_folder, one, folder, "--do_predict", tasks="mrpc")
    assert error is None
    name = "MRPC.tsv"
    assert (one / name).read_text() == next(out.rglob(name)).read_text()
