"""One evaluated set: its classes, calibration, and the errors that the model was surest of."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adapter_bert_tf.report import charts, confusion_matrix
from adapter_bert_tf.report.blocks import Block, Chart, Examples, Note, Table, format_number
from adapter_bert_tf.report.folder import Contents, Key

FOLDED_FROM = 15  # Rows of a table.
Details = dict[str, Any]


def keys(contents: Contents) -> list[Key]:
    """The evaluated sets, in the order of their names."""
    return sorted({*contents.details, *contents.classes})


def title(key: Key) -> str:
    """What a set is called: `mrpc: dev, mismatched`."""
    task, split = key
    return "".join([f"{task}: " if task else "", "dev", f", {split}" if split else ""])


def parts(contents: Contents, key: Key) -> list[Callable[[], list[Block]]]:
    """Functions that each make some blocks of a set, and may fail where a file is damaged."""
    seed = f"seed {contents.flags.get('seed', 'not recorded')}"
    name = "-".join(["set", str(keys(contents).index(key))])
    found: list[Callable[[], list[Block]]] = []
    table, details = contents.classes.get(key), contents.details.get(key)
    if details:
        of = " ".join(part for part in (key[0], "dev", key[1]) if part)
        n = f"n = {format_number(details.get('examples'))} examples of {of}, {seed}"
        found = [functools.partial(make, details, name, n) for make in OF_KIND[details["kind"]]]
    if table:  # Charts stand side by side, and above what is long.
        found.insert(0, functools.partial(confusion, table, name, seed))
        found.insert(2 if details else 1, functools.partial(each_class, table, seed))
    return found


def confusion(table: Sequence[Sequence[str]], name: str, seed: str) -> list[Block]:
    """What each class was taken for; of any number of labels there is no such thing."""
    header, *rows = table
    if len(header) < 5 + len(rows):
        return []
    counts = [[int(cell) for cell in row[5:]] for row in rows]
    return [confusion_matrix.confusion([row[0] for row in rows], counts, name, seed)]


def each_class(table: Sequence[Sequence[str]], seed: str) -> list[Block]:
    """Precision, recall and F1 of each class, or label."""
    header, *rows = table
    n = sum(int(row[4]) for row in rows)
    shown = [[*row[:4], format_number(int(row[4]))] for row in rows]
    of, what = ("labels", "labels of examples") if len(header) == 5 else ("classes", "examples")
    caption = f"{len(rows)} {of} (n = {format_number(n)} {what}, {seed})"
    return [Table(header[:5], shown, caption, folded=len(rows) > FOLDED_FROM)]


def calibration(details: Details, name: str, n: str) -> list[Block]:
    """Chart of how often the model was right, by how sure it was."""
    found = details["calibration"]
    bins = [one for one in found["bins"] if one["count"]]
    x, y = [one["probability"] for one in bins], [one["share"] for one in bins]
    sizes = [one["count"] for one in bins]
    of, came = WHAT[details["kind"]]

    def paint(axes: Any) -> None:
        axes.plot(
            [0, 1], [0, 1], color=charts.TEXT_COLOUR, linewidth=1, linestyle=":", label="calibrated"
        )
        axes.plot(x, y, label="model", clip_on=False, **charts.style(0))
        for one, share, size in zip(x, y, sizes, strict=True):
            below = share > 0.85
            axes.annotate(
                f"{size:,}", (one, share), (0, -11 if below else 6), textcoords="offset points",
                ha="center", fontsize=7.5,
            )  # fmt: skip
        axes.set(xlim=(0, 1.04), ylim=(0, 1.04), xlabel=of, ylabel=came)
        axes.legend(loc="upper left")

    about = f"Calibration: expected calibration error {found['error']:.3f}"
    caption = (
        f"Calibration: each point is a bin with its number of {UNITS[details['kind']]}; on the "
        f"dotted line a probability is the share that is right. Expected calibration error "
        f"{found['error']:.3f}. {n}."
    )
    return [Chart(charts.draw(f"{name}-calibration", about, paint), caption)]


WHAT = {
    "classes": ("probability of the answer (mean of a bin)", "share of right answers"),
    "labels": ("probability of a label (mean of a bin)", "share that has the label"),
    "spans": ("probability of the answer (mean of a bin)", "share of exact matches"),
}
UNITS = {"classes": "examples", "labels": "decisions (example and label)", "spans": "questions"}


def errors(details: Details, name: str, n: str) -> list[Block]:
    """The wrong answers that the model was surest of, with their texts."""
    count, shown = details["errors"], details["shown"]
    if not count:
        return [Note(f"No errors: {n}.")]
    caption = (
        f"The {len(shown)} of {format_number(count)} errors that the model was surest of. {n}."
    )
    return [Examples(caption, [_error(one) for one in shown])]


def _error(one: Details) -> dict[str, Any]:
    facts = [("said", one["predicted"]), ("is", one["true"])]
    facts.append(("probability", format_number(one["probability"])))
    if "probability_of_true" in one:
        facts.append(("of the true label", format_number(one["probability_of_true"])))
    return {"facts": [*facts, _line(one)], "texts": [[text] for text in one["texts"]]}


def _line(one: Details) -> tuple[str, str]:
    return ("line of the file", str(one.get("line", "?")))


def of_labels(details: Details, name: str, n: str) -> list[Block]:
    """How each label was missed, and said where it is not."""
    rows = [
        [one["label"], *(format_number(one[key]) for key in ("right", "missed", "said_wrongly"))]
        for one in details["per_label"]
    ]
    header = ["label", "found", "missed", "said wrongly"]
    return [Table(header, rows, f"Errors by label. {n}.", folded=len(rows) > FOLDED_FROM)]


def scores(details: Details, name: str, n: str) -> list[Block]:
    """Predicted scores by true ones."""
    x, y = zip(*details["points"], strict=True)

    def paint(axes: Any) -> None:
        ends = [min(*x, *y), max(*x, *y)]
        axes.plot(ends, ends, color=charts.TEXT_COLOUR, linewidth=1, linestyle=":", label="equal")
        axes.scatter(x, y, s=14, color=charts.SERIES[0], alpha=0.8, linewidths=0, label="examples")
        axes.set(xlabel="true score (the task's unit)", ylabel="predicted score (same unit)")
        axes.legend()

    drawn = "" if len(x) == details["examples"] else f"{len(x)} of them are drawn. "
    caption = (
        f"Predicted by true scores. Mean residual {format_number(details['mean_residual'])}, mean "
        f"absolute residual {format_number(details['mean_absolute_residual'])}. {drawn}{n}."
    )
    about = "Scatter of predicted scores by true scores"
    return [Chart(charts.draw(f"{name}-scores", about, paint, 3.2), caption)]


def residuals(details: Details, name: str, n: str) -> list[Block]:
    """The examples whose scores are furthest off."""
    items = [
        {
            "facts": [
                ("said", format_number(one["predicted"])),
                ("is", format_number(one["true"])),
                ("residual", f"{one['predicted'] - one['true']:+.4f}"),
                _line(one),
            ],
            "texts": [[text] for text in one["texts"]],
        }
        for one in details["shown"]
    ]
    return [Examples(f"The {len(items)} largest residuals. {n}.", items)]


def f1_of_answers(details: Details, name: str, n: str) -> list[Block]:
    """How many answers reach which F1."""
    counts = details["f1_counts"]
    width = 100 / len(counts)
    middles = [(i + 0.5) * width for i in range(len(counts))]

    def paint(axes: Any) -> None:
        axes.bar(middles, counts, width * 0.9, color=charts.SERIES[0])
        axes.set(xlabel="F1 of an answer (%)", ylabel="questions")
        axes.grid(visible=False, axis="x")
        axes.yaxis.get_major_locator().set_params(integer=True)

    caption = f"Answers by their F1, best of the expected answers. {n}."
    return [Chart(charts.draw(f"{name}-f1", "Number of answers by F1", paint), caption)]


def spans(details: Details, name: str, n: str) -> list[Block]:
    """The worst answers, in their contexts."""
    items = [
        {
            "facts": [
                ("F1", f"{100 * one['f1']:.0f}%"),
                ("probability", f"{one['probability']:.3f}"),
                ("given", one["given"] or "no answer"),
                ("expected", " / ".join(one["expected"]) or "no answer"),
            ],
            "texts": [[one["question"]], list(one["context"])],
        }
        for one in details["shown"]
    ]
    if not items:
        return [Note(f"No errors: {n}.")]
    count = format_number(details["errors"])
    return [Examples(f"The {len(items)} worst of {count} answers below an F1 of 100%. {n}.", items)]


OF_KIND: dict[str, tuple[Callable[[Details, str, str], list[Block]], ...]] = {
    "classes": (calibration, errors),
    "labels": (calibration, of_labels, errors),
    "scores": (scores, residuals),
    "spans": (calibration, f1_of_answers, spans),
}
