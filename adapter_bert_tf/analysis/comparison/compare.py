"""Two or more adapters on the same development set: metrics, and whether they differ by chance."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.cache import AnalysisCache
from adapter_bert_tf.analysis.comparison import plot, resampling
from adapter_bert_tf.analysis.dev_set import DevSet
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.store.directory import find_adapter, parse_named_folders
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import RowProgress
from adapter_bert_tf.training.strategy import set_precision

NAME = "compare"
OF_EACH = ("adapter", "metric", "value", "low", "high", "examples")
OF_PAIRS = ("a", "b", "difference", "low", "high", "only_a_right", "only_b_right", "mcnemar_p")
FILES = (*common.pictures_of(NAME), f"{NAME}.json", f"{NAME}_pairs.csv", f"{NAME}_examples.csv")


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Runs the command.

    Args:
      config: of the command.
      options: flags of this analysis, by name.

    Raises:
      InputError: when there are fewer than two adapters, or something is wrong with one of them or
        the data.
    """
    common.check_analysis(config, NAME, FILES)
    folders = _adapters(options["adapters"])
    runner = common.runner_of(config)
    plans = {
        name: common.plan_analysis(runner, config.changed(adapter_dir=folder))
        for name, folder in folders.items()
    }
    first = next(iter(plans.values()))
    for name, plan in plans.items():
        _check_same(first, plan, name)
    if first.actions.dry_run:
        print(f"{len(plans)} adapters can be compared: {', '.join(plans)}.", flush=True)
        return
    with outputs.lock(first.output.folder, FILES):
        dev = common.dev_set(first)
        _write(first, dev, {name: _answers(runner, plan, dev) for name, plan in plans.items()})


def _adapters(text: str | None) -> dict[str, str]:
    """Dict from name to adapter directory, of `--adapters=[NAME=]DIR,...`."""
    found: dict[str, str] = {}
    for given, folder in parse_named_folders(text or ""):
        name = printable(given or folder.rstrip("/"))
        if name in found:
            raise InputError(f"--adapters: {preview(name)} is there twice. Write NAME=DIR.")
        found[name] = find_adapter(folder) or folder
    if len(found) < 2:
        raise InputError(
            "--adapters are two or more adapter directories or output folders, with commas between "
            f"(NAME=DIR gives one a name). Received: {preview(text)}"
        )
    return found


def _check_same(first: Plan, plan: Plan, name: str) -> None:
    """Answers are compared by numbers of labels and rows. Raises `InputError` if these differ."""
    labels, theirs = (one.only_task.labels_in_order for one in (first, plan))
    if list(labels) != list(theirs):
        raise InputError(
            f"--adapters: {preview(name)} has the labels {preview(list(theirs))}, and the first "
            f"one {preview(list(labels))}. Compare adapters of the same labels, in the same order."
        )
    digests = [one.only_task.record()["data_sha256"] for one in (first, plan)]
    if digests[0] != digests[1]:
        raise InputError(
            f"--adapters: {preview(name)} reads another dev set than the first one: its columns or "
            "texts differ. Compare adapters that read the same."
        )


def _answers(runner: TaskRunner, plan: Plan, dev: DevSet) -> Any:
    """The answers of an adapter; those that were computed before are kept."""
    key = common.identity(plan)
    kept = AnalysisCache(plan.output.folder, NAME, NAME)
    if key not in kept.found:
        kept.add(key, dev.to_json(_computed(runner, plan)))
    return dev.from_json(kept.found[key])


def _computed(runner: TaskRunner, plan: Plan) -> Any:
    set_precision(plan.precision)
    model, dev = new_model(runner, plan), common.dev_set(plan)
    progress = RowProgress(f"{plan.output.adapter_folder}, {dev.title}", dev.rows)
    parts = inference.predict(model, dev.batches)
    return dev.answers(list(progress.track(parts)))


def _write(plan: Plan, dev: DevSet, answers: dict[str, Any]) -> None:
    """Writes tables and pictures, and says the most important."""
    rows = [_of_one(dev, name, found) for name, found in answers.items()]
    pairs = [_of_two(dev, *pair, answers) for pair in itertools.combinations(answers, 2)]
    for name, metric, value, low, high, count in rows:
        print(f"{name}: {metric} {value:.4f} ({low:.4f} to {high:.4f}), n = {count:,}")
    for a, b, change, low, high, *_, p in pairs:
        by_chance = "" if p is None else f", McNemar p = {p:.3g}"
        print(f"{b} against {a}: {change:+.4f} ({low:+.4f} to {high:+.4f}){by_chance}")
    made = {
        f"{NAME}.csv": outputs.table(OF_EACH, map(_short, rows)),
        f"{NAME}_pairs.csv": outputs.table(OF_PAIRS, map(_short, pairs)),
        f"{NAME}_examples.csv": _examples(dev, answers),
    }
    figure = plot.draw(plan.only_task.name, rows)
    pictures = outputs.pictures(figure, NAME, command())
    paths = outputs.write(plan.output.folder, made | pictures)
    print(f"Compared: {', '.join(paths)}", flush=True)


def _of_one(dev: DevSet, name: str, answers: Any) -> list[Any]:
    """The metric of an adapter, its 95% bootstrap interval, and the number of examples."""
    ends = resampling.interval(lambda rows: dev.score(answers, rows), len(dev))
    return [name, dev.metric, dev.score(answers), *ends, len(dev)]


def _of_two(dev: DevSet, a: str, b: str, answers: dict[str, Any]) -> list[Any]:
    """How much better b is, the interval of that, and McNemar's test where answers are right."""

    def difference(rows: np.ndarray | None) -> float:
        return dev.score(answers[b], rows) - dev.score(answers[a], rows)

    ends = resampling.interval(difference, len(dev))
    counts: tuple[Any, ...] = (None, None, None)
    right_a, right_b = (dev.right(answers[name]) for name in (a, b))
    if right_a is not None and right_b is not None:
        counts = resampling.mcnemar(right_a, right_b)
    return [a, b, difference(None), *ends, *counts]


def _short(row: list[Any]) -> list[Any]:
    return ["" if v is None else f"{v:.6g}" if isinstance(v, float) else v for v in row]


def _examples(dev: DevSet, answers: dict[str, Any]) -> bytes:
    """The examples on which they differ: place, texts, what is right, what each says."""
    said = list(zip(*(dev.said(found) for found in answers.values()), strict=True))
    rows = [[*dev.example(i), *words] for i, words in enumerate(said) if len(set(words)) > 1]
    return outputs.table([*dev.columns, *answers], rows)
