"""Result files of tagging: predicted tags, entities, details."""

import io
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.data.tagging.schemes import PLAIN, from_iob2
from adapter_bert_tf.data.tagging.tagged_files import TaggedSentences
from adapter_bert_tf.heads.tag_decoding import ARGMAX, DecodedTags, decode
from adapter_bert_tf.predict.tagged_files import column_lines, is_json, json_line, tagged_lines
from adapter_bert_tf.runners.tagging.task_data import TagData
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.task_types.tag_details import seen_texts, tag_details
from adapter_bert_tf.task_types.tags import TAGS, WordLogits

ENTITIES = "test_entities.jsonl"
PREDICTIONS = ("test_predictions.conll", "test_predictions.jsonl")
OF_TASK = ("eval_details.json", *PREDICTIONS, ENTITIES)
METRICS = "test_metrics.txt"
MOST_PRINTED = 5


def names_of(tasks: Collection[TagData]) -> list[str]:
    """Returns the names of the result files of tasks; of no tasks, those that any may leave."""
    prefixes = [task.file_prefix for task in tasks] or [""]
    return [METRICS, *(f"{prefix}{name}" for prefix in prefixes for name in OF_TASK)]


def write_predictions(folder: str, task: TagData, logits: Sequence[np.ndarray]) -> None:
    """Writes the tags and the entities of the test file, and prints a few of them.

    Args:
      folder: `--output_dir`.
      task: whose test split it is.
      logits: of each sentence, float32 `[words, tags]`; masked for words without pieces.
    """
    part, form = task.splits["test"], task.form
    answers = answers_of(task, part.words, logits)
    scheme = _written_scheme(part, task.scheme)
    tags = (from_iob2(answer["tags"], scheme) for answer in answers)
    extension = "jsonl" if form and is_json(part.path) else "conll"
    path = os.path.join(folder, f"{task.file_prefix}test_predictions.{extension}")
    if form:
        _write(path, tagged_lines(part.path, form, tags))
    else:
        rows = zip(part.words, tags, strict=True)
        _write(path, (line for row in rows for line in column_lines(*row)))
    written = [path]
    if task.scheme != PLAIN:
        written.append(os.path.join(folder, f"{task.file_prefix}{ENTITIES}"))
        _write(
            written[-1],
            (json_line({name: a[name] for name in ("words", "entities")}) for a in answers),
        )
    for name in (*PREDICTIONS, ENTITIES):  # Of an earlier run on another file.
        other = os.path.join(folder, f"{task.file_prefix}{name}")
        if other not in written and storage.exists(other):
            storage.remove(other)
    for answer in answers[:MOST_PRINTED]:
        print(printable(f"  {_shown(answer)}"))
    print(f"Predictions: {', '.join(written)}", flush=True)


def _written_scheme(part: TaggedSentences, scheme: str) -> str:
    """Returns the scheme to write: the training file's, or the test file's if it has another.

    IO is never taken from the test file, as it would join neighbours that the adapter separates.
    """
    fits = all(
        from_iob2(tags, part.scheme) == from_iob2(tags, scheme) for tags in part.tags if tags
    )
    return scheme if fits or part.scheme == "IO" else part.scheme


def answers_of(
    task: TagData, words: Sequence[Sequence[str]], logits: Sequence[np.ndarray]
) -> list[dict[str, Any]]:
    """Returns the answers of a `Predictor` to sentences of words."""
    nothing = np.zeros(0, np.int64)
    outputs = [
        WordLogits(None, sentence, nothing, nothing, own)
        for sentence, own in zip(words, logits, strict=True)
    ]
    return TAGS.answers(outputs, task.adapter_config())


def details(
    task: TagData, split: str, decoded: Sequence[DecodedTags], logits: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Returns the details of a split with known tags, for `eval_details.json`."""
    part, train = task.splits[split], task.splits.get("train")
    made = tag_details(
        part.words,
        part.tags,
        [sentence.tags for sentence in decoded],
        [sentence.probabilities.tolist() for sentence in decoded],
        [sentence.tags for sentence in decode(logits, task.labels, task.scheme, ARGMAX)],
        seen_texts(train.words, train.tags, task.scheme) if train else set(),
        task.scheme,
        [sentence.line for sentence in part.sentences],
    )
    if train is None:  # Unknown what the adapter has seen.
        made.pop("by_seen", None)
    return made


def _shown(answer: Mapping[str, Any]) -> str:
    """A few words about an answer."""
    if "entities" not in answer:
        pairs = zip(answer["words"], answer["tags"], strict=True)
        return " ".join(f"{word}/{tag}" for word, tag in pairs)[:200]
    found = [f"{one['text']} ({one['type']})" for one in answer["entities"]]
    return f"{', '.join(found) or 'no entity'}  {' '.join(answer['words'])[:160]}"


def _write(path: str, lines: Iterable[str]) -> None:
    text = io.StringIO()
    text.writelines(lines)
    storage.write_bytes(path, text.getvalue().encode("utf-8", "backslashreplace"))
