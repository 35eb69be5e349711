"""Report parts of an evaluated set, from the values in its `eval_details.json`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapter_bert_tf import report_blocks as blocks
from adapter_bert_tf.report_blocks import Block, format_number

FOLDED_FROM = 15  # Rows of a table.
Details: TypeAlias = Mapping[str, Any]


def calibration(x_label: str, y_label: str, unit: str) -> Callable[[Details, str], list[Block]]:
    """Makes a report part with a calibration chart; `unit` is what its bins count."""

    def part(details: Details, n: str) -> list[Block]:
        values = details["calibration"]
        error = f"{values['error']:.3f}"
        caption = (
            f"Calibration: each point is a bin with its number of {unit}; on the dotted line, "
            f"probability and accuracy are equal. Expected calibration error {error}. {n}."
        )
        about = f"Calibration: expected calibration error {error}"
        bins = [bin_ for bin_ in values["bins"] if bin_["count"]]
        return [blocks.CalibrationPlot("calibration", about, caption, x_label, y_label, bins)]

    return part


def errors(details: Details, n: str) -> list[Block]:
    """Makes the list of the most confident errors, with their texts."""
    count, examples = details["errors"], details["shown"]
    if not count:
        return [blocks.Note(f"No errors: {n}.")]
    caption = f"The {len(examples)} most confident of {format_number(count)} errors. {n}."
    return [blocks.Examples(caption, [_error(example) for example in examples])]


def _error(example: Details) -> dict[str, Any]:
    facts = [("predicted", example["predicted"]), ("true label", example["true"])]
    facts.append(("probability", format_number(example["probability"])))
    if "probability_of_true" in example:
        facts.append(("of the true label", format_number(example["probability_of_true"])))
    return _item(facts, example)


def _item(facts: list[tuple[str, str]], example: Details) -> dict[str, Any]:
    """Makes an item of `Examples` with the texts and the line of an example."""
    line = ("line of the file", str(example.get("line", "?")))
    return {"facts": [*facts, line], "texts": [[text] for text in example["texts"]]}


def labels(details: Details, n: str) -> list[Block]:
    """Makes the table of errors by label: missed, and wrongly predicted."""
    counts = ("right", "missed", "said_wrongly")
    rows = [
        [row["label"], *(format_number(row[key]) for key in counts)] for row in details["per_label"]
    ]
    header = ["label", "correct", "missed", "wrongly predicted"]
    return [blocks.Table(header, rows, f"Errors by label. {n}.", folded=len(rows) > FOLDED_FROM)]


def scores(details: Details, n: str) -> list[Block]:
    """Makes the chart of predicted scores by true scores."""
    points = details["points"]
    sample = "" if len(points) == details["examples"] else f"{len(points)} of them are shown. "
    caption = (
        f"Predicted by true scores. Mean residual {format_number(details['mean_residual'])}, mean "
        f"absolute residual {format_number(details['mean_absolute_residual'])}. {sample}{n}."
    )
    about = "Scatter of predicted scores by true scores"
    labels = ("true score (the task's unit)", "predicted score (same unit)")
    return [blocks.ScatterPlot("scores", about, caption, *labels, points)]


def residuals(details: Details, n: str) -> list[Block]:
    """Makes the list of examples with the largest residuals."""
    items = []
    for example in details["shown"]:
        predicted, true = example["predicted"], example["true"]
        facts = [("predicted", format_number(predicted)), ("true score", format_number(true))]
        items.append(_item([*facts, ("residual", f"{predicted - true:+.4f}")], example))
    return [blocks.Examples(f"The {len(items)} largest residuals. {n}.", items)]


def f1_of_answers(details: Details, n: str) -> list[Block]:
    """Makes the histogram of the answers' F1."""
    caption = f"Answers by their F1, best of the expected answers. {n}."
    labels = ("F1 of an answer (%)", "questions")
    counts = details["f1_counts"]
    return [blocks.Histogram("f1", "Number of answers by F1", caption, *labels, counts)]


def spans(details: Details, n: str) -> list[Block]:
    """Makes the list of the worst answers in their contexts."""
    items = []
    for answer in details["shown"]:
        facts = [
            ("F1", f"{100 * answer['f1']:.0f}%"),
            ("probability", f"{answer['probability']:.3f}"),
            ("predicted", answer["given"] or "no answer"),
            ("expected", " / ".join(answer["expected"]) or "no answer"),
        ]
        before, at, after = answer["context"]
        texts = [[answer["question"]], [before, blocks.Mark(at), after]]
        items.append({"facts": facts, "texts": texts})
    if not items:
        return [blocks.Note(f"No errors: {n}.")]
    count = format_number(details["errors"])
    caption = f"The {len(items)} worst of {count} answers below an F1 of 100%. {n}."
    return [blocks.Examples(caption, items)]
