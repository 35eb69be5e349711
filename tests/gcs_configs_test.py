"""Every configuration in gcs_configs/: its flags, its card, and its steps at a tiny size."""

import dataclasses
import functools
import json
import re
import subprocess
import sys

import pytest
import yaml

from adapter_bert_tf.config import settings
from adapter_bert_tf.tasks.glue import GLUE
from benchmarks import runner, step_models, tpu_cases

CONFIGS = {path.stem: path for path in sorted(tpu_cases.CONFIGS.glob("*.yaml"))}
ON_TPU = [name for name in CONFIGS if name != "sample_cpu"]
CARD = ("Paper", "Command", "Hardware", "Time", "Metric", "Settings", "Run")
# Table 1 of the paper, without WNLI as there, and its section 3.5. A task that is added needs none.
PAPER = ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte", "squad")
PATHS = settings.paths_read(training=True) + settings.paths_written(training=True)
# In a process for each script, because both define the same flags.
PARSE = """
import importlib, json, sys
from absl import flags
from adapter_bert_tf.cli.config_file import apply_config_file
module = importlib.import_module(sys.argv[1])
for path in sys.argv[2:]:
    for name in flags.FLAGS:
        flags.FLAGS[name].unparse()
    flags.FLAGS([sys.argv[1], "--config=" + path])
    apply_config_file(flags.FLAGS)
    print(json.dumps({name: flags.FLAGS[name].value for name in flags.FLAGS}))
"""


def script(name):
    return "run_squad" if name.startswith("squad") else "run_classifier"


@functools.cache
def parsed_flags():
    """Dict from a configuration's name to all flags, as its script parses them."""
    flags = {}
    for module in ("run_classifier", "run_squad"):
        names = [name for name in CONFIGS if script(name) == module]
        done = subprocess.run(
            [sys.executable, "-c", PARSE, module, *map(CONFIGS.get, names)],
            cwd=runner.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        flags |= dict(zip(names, map(json.loads, done.stdout.splitlines()), strict=True))
    return flags


def card(name):
    """The card's lines, by their first word."""
    head = CONFIGS[name].read_text().split("\n\n")[0]
    text = "\n".join(line.removeprefix("#").strip() for line in head.splitlines())
    return dict(re.findall(r"^(\w+): +((?:.|\n(?!\w+: ))+)", text, re.M))


def test_every_task_of_the_paper_on_both_bases():
    assert set(PAPER) - {"squad"} <= {task.name for task in GLUE}
    expected = {f"{task}_{base}" for task in PAPER for base in ("base", "large")}
    assert {name.rpartition("_")[0] for name in ON_TPU} == expected
    assert len(ON_TPU) == len(expected)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_card(name):
    lines = card(name)
    assert tuple(lines) == CARD
    assert lines["Command"] == f"python {script(name)}.py --config=gcs_configs/{name}.yaml"
    assert "arXiv 1902.00751" in lines["Paper"] and re.search(r"\d", lines["Metric"])
    assert lines["Hardware"].startswith("CPU" if name == "sample_cpu" else name.split("_")[-1])
    if name in ON_TPU:
        assert lines["Time"] == "not published."
        assert lines["Run"] == "Not run by this project: no TPU was available."


@pytest.mark.parametrize("name", CONFIGS)
def test_the_script_takes_every_line_as_a_flag(name):
    flags = parsed_flags()[name]
    for flag, value in yaml.safe_load(CONFIGS[name].read_text()).items():
        assert flags[flag] == value
    assert flags["precision"].replace("auto", "float32") in card(name)["Hardware"]  # As on a CPU.
    assert flags["do_train"] and flags["output_dir"].endswith(name)


@pytest.mark.parametrize("name", ON_TPU)
def test_on_tpu(name):
    flags, hardware = parsed_flags()[name], name.split("_")[-1]
    replicas = {"v2-8": 8, "v3-8": 8, "v4-8": 4}[hardware]
    assert flags["use_tpu"] and flags["tpu_name"]
    for path in PATHS:
        assert flags.get(path) is None or flags[path].startswith("gs://YOUR_BUCKET/")
    for batch in ("train", "eval", "predict"):
        assert flags[f"{batch}_batch_size"] % replicas == 0
    each = (
        f"{replicas} {'chips' if replicas == 4 else 'cores'}, "
        f"{flags['train_batch_size'] // replicas} examples per "
    )
    assert each in card(name)["Hardware"]
    assert flags["max_seq_length"] == (384 if name.startswith("squad") else 128)
    assert ("L-24" if "_large_" in name else "L-12") in flags["base_model"]


def tiny_steps():
    """The distinct steps of all configurations, on a tiny encoder with BERT's 512 positions."""
    cases = [
        case
        for configs in tpu_cases.by_shape().values()
        for own in configs.values()
        for case in own
    ]
    return list(
        dict.fromkeys(
            dataclasses.replace(case, chip="", base="tiny", adapter_size=4) for case in cases
        )
    )


@pytest.mark.parametrize(
    "case",
    tiny_steps(),
    ids=lambda case: "-".join(
        map(str, (case.step, case.head, case.outputs, case.batch, case.length, case.precision))
    ),
)
def test_a_step_at_the_configured_shape(case):
    model, batch = step_models.new_model(case), step_models.arguments(case)
    if case.step == "predict":
        outputs = model.predict_step(batch)
        span = case.head == "span"
        assert outputs.shape == (
            [case.batch, 2, case.length] if span else [case.batch, case.outputs]
        )
        assert outputs.dtype == "float32"
        return
    kernel = model.named_variables()["head/kernel"]
    before = kernel.numpy()
    loss = model.train_step(batch)["loss"]
    assert loss.shape == [] and float(loss) >= 0
    assert kernel.shape == (16, case.outputs) and (kernel.numpy() != before).any()
