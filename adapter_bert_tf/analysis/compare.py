"""Comparison of adapters on the same development set: metrics and significance."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.stats

from adapter_bert_tf.analysis import common, outputs, plots
from adapter_bert_tf.analysis.cache import AnalysisCache
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError, Mismatch, error_context
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_data import DevSet
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.store.combining.stacking import stack_folders
from adapter_bert_tf.store.directory import parse_named_folders
from adapter_bert_tf.store.files import adapter_at, read_adapter_config
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import RowProgress

NAME = "compare"
METRIC_FIELDS = ("adapter", "metric", "value", "low", "high", "examples")
PAIR_FIELDS = ("a", "b", "difference", "low", "high", "only_a_right", "only_b_right", "mcnemar_p")
FILES = (*outputs.file_names(NAME), f"{NAME}.json", f"{NAME}_pairs.csv", f"{NAME}_examples.csv")
RESAMPLES, CONFIDENCE = 1_000, 0.95


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Compares the adapters of `--adapters`, two or more. Raises `InputError`."""
    common.check_analysis(config, NAME, FILES)
    folders = _parse_adapters(options["adapters"])
    runner = common.runner_for(config)
    configs = {name: read_adapter_config(folder) for name, folder in folders.items()}
    below = stack_folders(configs, config.training.stack)
    below |= _parse_stacks(options["stacks"], list(folders))
    plans, run_cache = {}, RunCache()
    for name, folder in folders.items():
        one = config.changed(adapter_dir=folder, stack=below[name])
        with error_context(f"--adapters: {preview(name)}"):
            plans[name] = common.plan_analysis(runner, one, run_cache)
    first = next(iter(plans.values()))
    for name, plan in plans.items():
        _check_same(first, plan, name)
    if first.actions.dry_run:
        print(f"{len(plans)} adapters can be compared: {', '.join(plans)}.", flush=True)
        return
    with outputs.lock(first.output.folder, FILES):
        dev = runner.dev_set(first)
        cache = AnalysisCache(first.output.folder, NAME, NAME)
        answers = {}
        for name, plan in plans.items():
            key = common.identity(plan)
            if key not in cache.results:
                cache.add(key, dev.to_json(_compute_answers(runner, plan)))
            answers[name] = dev.from_json(cache.results[key])
        _write(first, dev, answers)


def _parse_adapters(text: str | None) -> dict[str, str]:
    """Parses `[NAME=]DIR,...` to a dict from name to adapter directory."""
    adapters: dict[str, str] = {}
    for adapter_name, folder in parse_named_folders(text or ""):
        name = printable(adapter_name or folder.rstrip("/"))
        if name in adapters:
            raise InputError(f"--adapters: {preview(name)} is there twice. Write NAME=DIR.")
        adapters[name] = adapter_at(folder)
    if len(adapters) < 2:
        raise InputError(
            "--adapters must be two or more adapter directories or output folders, separated by "
            f"commas (NAME=DIR sets a name). Received: {preview(text)}"
        )
    return adapters


def _parse_stacks(text: str | None, names: list[str]) -> dict[str, str]:
    """Parses `NAME=DIR,...` to a dict from an adapter's name to the directory below it.

    Raises `InputError` for a name that is not one of `names`.
    """
    stacks = {printable(name): folder for name, folder in parse_named_folders(text or "")}
    if unknown := [name for name in stacks if name not in names]:
        raise InputError(
            f"--stacks must be NAME=DIR of {names}, separated by commas. Received: "
            f"{preview(unknown)}"
        )
    return stacks


def _check_same(first: Plan, plan: Plan, name: str) -> None:
    """Raises `InputError` if labels or dev sets differ: answers are numbers of labels and rows."""
    labels, first_labels = (list(p.only_task.labels_in_order) for p in (plan, first))
    if labels != first_labels:
        raise Mismatch(
            f"--adapters: {preview(name)} has the labels {preview(labels)}, and the first one "
            f"{preview(first_labels)}. Compare adapters with the same labels in the same order."
        )
    digest, first_digest = (p.only_task.record()["data_sha256"] for p in (plan, first))
    if digest != first_digest:
        raise Mismatch(
            f"--adapters: {preview(name)} reads another dev set than the first one: columns or "
            "texts differ. Compare adapters that read the same."
        )


def _compute_answers(runner: TaskRunner, plan: Plan) -> Any:
    model, dev = new_model(runner, plan), runner.dev_set(plan)
    progress = RowProgress(f"{plan.output.adapter_folder}, {dev.title}", dev.rows)
    return dev.answers(list(progress.track(inference.predict(model, dev.batches))))


def _write(plan: Plan, dev: DevSet, answers: dict[str, Any]) -> None:
    """Writes tables and pictures, and prints the main results."""
    resampled = {name: _resampled_scores(dev, name, values) for name, values in answers.items()}
    rows = [
        [name, dev.metric, dev.score(values), *interval(resampled[name]), len(dev)]
        for name, values in answers.items()
    ]
    pairs = [
        _pair_row(dev, *pair, answers, interval(resampled[pair[1]] - resampled[pair[0]]))
        for pair in itertools.combinations(answers, 2)
    ]
    for name, metric, value, low, high, count in rows:
        print(f"{name}: {metric} {value:.4f} ({low:.4f} to {high:.4f}), n = {count:,}")
    for a, b, change, low, high, *_, p in pairs:
        significance = "" if p is None else f", McNemar p = {p:.3g}"
        print(f"{b} against {a}: {change:+.4f} ({low:+.4f} to {high:+.4f}){significance}")
    tables = {
        f"{NAME}.csv": outputs.csv_table(METRIC_FIELDS, map(_format_row, rows)),
        f"{NAME}_pairs.csv": outputs.csv_table(PAIR_FIELDS, map(_format_row, pairs)),
        f"{NAME}_examples.csv": _examples_table(dev, answers),
    }
    figure = plots.draw_intervals(common.task_title(plan), rows)
    paths = outputs.write(plan.output.folder, tables, figure, NAME, command())
    print(f"Compared: {paths}", flush=True)


def _resampled_scores(dev: DevSet, name: str, answers: Any) -> np.ndarray:
    progress = RowProgress(f"{name}, resamples of {dev.metric}", RESAMPLES)

    def score(rows: np.ndarray) -> float:
        progress.add(1)
        return dev.score(answers, rows)

    return resampled_scores(score, len(dev))


def _pair_row(
    dev: DevSet, a: str, b: str, answers: dict[str, Any], ends: tuple[float, float]
) -> list[Any]:
    """Values of `PAIR_FIELDS`: how much better b is, and McNemar's test except for scores."""
    counts: tuple[Any, ...] = (None, None, None)
    right_a, right_b = (dev.correct(answers[name]) for name in (a, b))
    if right_a is not None and right_b is not None:
        counts = mcnemar(right_a, right_b)
    return [a, b, dev.score(answers[b]) - dev.score(answers[a]), *ends, *counts]


def _format_row(row: list[Any]) -> list[Any]:
    return ["" if v is None else f"{v:.6g}" if isinstance(v, float) else v for v in row]


def _examples_table(dev: DevSet, answers: dict[str, Any]) -> bytes:
    """The examples with different answers: location, texts, label, each adapter's answer."""
    texts = [dev.answer_texts(values) for values in answers.values()]
    rows = [
        [*dev.describe_example(number), *answer_texts]
        for number, answer_texts in enumerate(zip(*texts, strict=True))
        if len(set(answer_texts)) > 1
    ]
    return outputs.csv_table([*dev.columns, *answers], rows)


def resampled_scores(score: Callable[[np.ndarray], float], count: int, seed: int = 0) -> np.ndarray:
    """A metric of bootstrap samples of examples `[count]`, float64 `[RESAMPLES]`.

    The samples are those of the seed, so values of two systems belong together.
    """
    rng = np.random.default_rng(seed)
    return np.array([score(rng.integers(0, count, count)) for _ in range(RESAMPLES)])


def interval(values: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval of bootstrap values `[RESAMPLES]`."""
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def mcnemar(right_a: np.ndarray, right_b: np.ndarray) -> tuple[int, int, float]:
    """McNemar's exact test, from bool `[examples]`: right only in a, only in b, two-sided p."""
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    if only_a + only_b == 0:
        return 0, 0, 1.0
    return only_a, only_b, float(scipy.stats.binomtest(only_a, only_a + only_b).pvalue)
