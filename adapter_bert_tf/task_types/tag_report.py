"""Report parts of tagged sentences: types, outcomes, groups of entities, and marked sentences."""

from typing import Any

from adapter_bert_tf import report_blocks as blocks
from adapter_bert_tf.data.tagging.schemes import PLAIN
from adapter_bert_tf.report_blocks import Block, Mark, format_count, format_number
from adapter_bert_tf.task_types import report_parts
from adapter_bert_tf.task_types.report_parts import FOLDED_FROM, Details
from adapter_bert_tf.tasks.entity_errors import NO_ENTITY, SEEN, UNSEEN

COLOURS = 8  # In the style of the page; further types repeat them.
DOTS = "... "


def calibration(details: Details, n: str) -> list[Block]:
    """Makes the calibration chart of predicted entities, or of plain tags."""
    if "calibration" not in details:
        return [blocks.Note(f"No entity is predicted: {n}.")]
    what, unit = ("tag", "words") if _is_plain(details) else ("predicted entity", "entities")
    labels = (f"probability of the {what} (mean of a bin)", f"share of right {unit}", unit)
    return report_parts.calibration(*labels)(details, n)


def confusion(details: Details, n: str) -> list[Block]:
    """Makes the confusion matrix of types, or of plain tags."""
    types, counts = details["types"], details["confusion"]
    n = n.removeprefix("n = ")  # The chart counts what it shows.
    if not types:
        return []
    if _is_plain(details):
        return [blocks.Confusion(types, counts, "tag", "tags", "words", n)]
    labels = [*types, NO_ENTITY]
    return [blocks.Confusion(labels, counts, "type", "types", "entities", n)]


def types(details: Details, n: str) -> list[Block]:
    """Makes the table of precision, recall and F1 of each type, or of each plain tag."""
    what = "tag" if _is_plain(details) else "type"
    rows = [
        [row["type"], *map(format_number, _rates(row)), format_number(row["gold"])]
        for row in details["per_type"]
    ]
    header = [what, "precision", "recall", "F1", "words" if _is_plain(details) else "entities"]
    caption = f"{format_count(len(rows), what)}. {n}."
    return [blocks.Table(header, rows, caption, folded=len(rows) > FOLDED_FROM)] if rows else []


def outcomes(details: Details, n: str) -> list[Block]:
    """Makes the table of expected and predicted entities by outcome."""
    if _is_plain(details):
        return []
    counts = details["outcomes"]
    rows = [[name, *map(format_number, pair)] for name, pair in counts.items()]
    totals = [sum(pair[side] for pair in counts.values()) for side in (0, 1)]
    rows.append(["all", *map(format_number, totals)])
    header = ["outcome", "expected entities", "predicted entities"]
    caption = f"Entities by outcome. A wrong border shares a word with the right entity. {n}."
    return [blocks.Table(header, rows, caption, marked=len(rows) - 1)]


def groups(details: Details, n: str) -> list[Block]:
    """Makes the chart and the table of entities by length, and seen in training or not."""
    if _is_plain(details):
        return _words_seen(details, n)
    series = [details["by_length"], details.get("by_seen", [])]
    if not any(series):
        return []
    names = {SEEN: "seen", UNSEEN: "not seen"}
    bars = [[(names.get(row["group"], row["group"]), row["f1"]) for row in rows] for rows in series]
    caption = f"F1 of entities by number of words, and by whether training has their texts. {n}."
    about = "F1 by length of the entity and by whether it is seen in training"
    labels = ("words of the entity; its text in training", "F1 (0 to 1)")
    rows = [
        [
            f"{row['group']} word{'' if row['group'] == '1' else 's'}"
            if is_length
            else row["group"],
            *(format_number(row[name]) for name in ("gold", "predicted", "found")),
            *map(format_number, _rates(row)),
        ]
        for is_length, group in zip((True, False), series, strict=True)
        for row in group
    ]
    header = ["entities", "expected", "predicted", "found", "precision", "recall", "F1"]
    return [
        blocks.Bars("groups", about, caption, *labels, bars),
        blocks.Table(header, rows, f"Entities by length and by training. {n}.", place="wide"),
    ]


def _words_seen(details: Details, n: str) -> list[Block]:
    rows = [
        [row["group"], format_number(row["gold"]), format_number(row["accuracy"])]
        for row in details.get("by_seen", [])
    ]
    caption = f"Accuracy of words by whether training has them. {n}."
    return [blocks.Table(["words", "number", "accuracy"], rows, caption)] if rows else []


def decoding(details: Details, n: str) -> list[Block]:
    """Makes the sentence about what decoding changed; plain tags are not decoded."""
    if _is_plain(details):
        return []
    changed, words = details["changed"], format_count(details["words"], "tag")
    counts = f"{format_number(changed['words'])} of {words}"
    return [
        blocks.Note(
            f"Decoding changed {counts} in {format_count(changed['sentences'], 'sentence')}: "
            f"the F1 of the most probable tags is {format_number(details['argmax_f1'])}, "
            f"that of the decoded tags {format_number(details['f1'])}. {n}."
        )
    ]


def errors(details: Details, n: str) -> list[Block]:
    """Makes the list of sentences with the most confident errors."""
    if not details["errors"]:
        return [blocks.Note(f"No errors: {n}.")]
    total = (
        f"of {format_count(details['errors'], 'error')} in "
        f"{format_count(details['wrong_sentences'], 'sentence')}"
    )
    what = "tags" if _is_plain(details) else "entities"
    lists = [
        (details["shown"], f"wrongly predicted {what}, the most confident first, {total}"),
        (details["missed"], "missed entities, the most confident first"),
    ]
    return [
        blocks.Examples(
            f"{format_count(len(examples), 'sentence')} with {title}. {n}.",
            [_error(example, details["types"]) for example in examples],
        )
        for examples, title in lists
        if examples
    ]


def sample(details: Details, n: str) -> list[Block]:
    """Makes a list of sentences from the whole set, right or not."""
    items = [_sentence(example, details["types"]) for example in details["sample"]]
    caption = f"Sentences from the whole set ({len(items)}), as predicted and expected. {n}."
    return [blocks.Examples(caption, items)] if items else []


PARTS = (calibration, confusion, types, outcomes, groups, decoding, errors, sample)


def _is_plain(details: Details) -> bool:
    return bool(details["scheme"] == PLAIN)


def _rates(row: Details) -> tuple[float, float, float]:
    return row["precision"], row["recall"], row["f1"]


def _error(example: Details, types: list[str]) -> dict[str, Any]:
    facts = [
        ("error", example["outcome"]),
        ("words", example["entity"]),
        ("predicted", example["predicted"] or NO_ENTITY),
        ("expected", example["expected"] or NO_ENTITY),
        ("probability", format_number(example["probability"])),
    ]
    item = _sentence(example, types)
    return {"facts": [*facts, *item["facts"]], "texts": item["texts"]}


def _sentence(example: Details, types: list[str]) -> dict[str, Any]:
    """The line of a sentence, and its entities as predicted and, if others, as expected."""
    facts = [("line of the file", str(example["line"]))] if "line" in example else []
    texts = [_marked(example, "given", types)]
    if example["given"] == example["gold"]:
        return {"facts": [*facts, ("prediction", "right")], "texts": texts}
    texts[0].insert(0, "predicted: ")
    texts.append(["expected: ", *_marked(example, "gold", types)])
    return {"facts": facts, "texts": texts}


def _marked(example: Details, side: str, types: list[str]) -> list[str | Mark]:
    """The parts of a sentence, its entities marked."""
    words, place = example["words"], 0
    parts: list[str | Mark] = [DOTS] if example["is_cut"][0] else []
    for kind, first, end in example[side]:
        parts.append(" ".join(words[place:first]) + " " * (first > place))
        colour = types.index(kind) % COLOURS if kind in types else 0
        parts += [Mark(" ".join(words[first:end]), kind, colour), " "]
        place = end
    parts.append(" ".join(words[place:]))
    return [*parts, f" {DOTS}".rstrip()] if example["is_cut"][1] else parts
