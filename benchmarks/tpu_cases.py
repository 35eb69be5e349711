"""The steps that `benchmarks.tpu_compile` compiles: of configurations, presets and languages."""

import collections
import dataclasses
import pathlib

import yaml

from adapter_bert_tf.tasks import find_task
from benchmarks.runner import ROOT
from benchmarks.step_models import Case
from benchmarks.tpu_hlo import CHIPS

CONFIGS = ROOT / "gcs_configs"
CHECKPOINTS = {"uncased_L-12_H-768_A-12": "base", "uncased_L-24_H-1024_A-16": "large"}
COMPARED = ("v4", "v5e")
METHOD_PRESETS = ("lora", "ia3", "prefix", "compacter", "mam", "unipelt")
LANGUAGE, STACK = "pfeiffer+inv", "pfeiffer+inv/pfeiffer"
PRECISIONS = ("float32", "bfloat16")
NOT_THE_SHAPE = {"chip": "", "step": "", "precision": ""}


def config_cases(path):
    """Returns the training and the prediction step of a configuration, on its hardware."""
    flags = yaml.safe_load(path.read_text())
    if not flags.get("use_tpu"):
        return []
    chip = path.stem.rpartition("_")[2].removesuffix("-8")
    task = find_task(flags["task_name"]) if "task_name" in flags else None
    if task is None:
        head, outputs = "span", 2
    else:
        head, outputs = "classes" if task.labels else "score", len(task.labels or "1")
    batches = {"train": flags["train_batch_size"], "predict": flags["eval_batch_size"]}
    return [
        Case(
            chip=chip,
            step=step,
            base=CHECKPOINTS[pathlib.PurePath(flags["base_model"]).name],
            head=head,
            outputs=outputs,
            batch=batch // CHIPS[chip].replicas,
            length=flags["max_seq_length"],
            **{name: flags[name] for name in ("adapter", "adapter_size", "optimizer", "precision")},
        )
        for step, batch in batches.items()
    ]


def by_shape():
    """Groups cases by shape (a `Case` without chip, step and precision) and config name."""
    shapes = collections.defaultdict(dict)
    for path in sorted(CONFIGS.glob("*.yaml")):
        for case in config_cases(path):
            shape = dataclasses.replace(case, **NOT_THE_SHAPE)
            shapes[shape].setdefault(path.stem, []).append(case)
    return shapes


def plan():
    """Returns all cases: the configurations, and each shape on both compared chips.

    The common shapes are compared in both precisions, and come first.
    """
    shapes = sorted(by_shape().items(), key=lambda item: not is_common(item[0]))
    cases = [
        dataclasses.replace(case, chip=chip, precision=precision)
        for shape, configs in shapes
        for own in configs.values()
        for case in own
        for precision in (PRECISIONS if is_common(shape) else [case.precision])
        for chip in COMPARED
    ]
    own = [case for _, configs in shapes for cases_ in configs.values() for case in cases_]
    return list(dict.fromkeys(cases + own))


def preset_cases():
    """Returns both steps of the presets that no configuration has, with BERT-base."""
    return [
        Case("v5e", step, "base", "classes", 2, preset, 0, "adamw", "bfloat16", 128, 4)
        for step in ("train", "predict")
        for preset in METHOD_PRESETS
    ]


def language_cases():
    """Returns the steps of `adapt`, and of a task above the frozen adapter, with BERT-base."""
    return [
        Case("v5e", step, "base", head, 2, adapter, 0, "adamw", "bfloat16", 128, 4)
        for head, adapter in (("words", LANGUAGE), ("classes", STACK))
        for step in ("train", "predict")
    ]


def is_common(shape):
    """Whether a shape is the usual one: adapters of size 64, two outputs."""
    return (shape.adapter_size, shape.outputs) == (64, 2)


def searches():
    """Returns the cases for the search of the largest batch: one per base, head, chip, precision.

    Those in the precision of a configuration come first.
    """
    own = {
        dataclasses.replace(case, chip=chip)
        for configs in by_shape().values()
        for cases in configs.values()
        for case in cases
        for chip in COMPARED
    }
    starts = {}
    for case in plan():
        if case.step == "train" and case.adapter_size == 64 and case.chip in COMPARED:
            head = "span" if case.head == "span" else "not span"
            starts.setdefault((case.base, head, case.chip, case.precision), case)
    return sorted(starts.values(), key=lambda case: case not in own)
