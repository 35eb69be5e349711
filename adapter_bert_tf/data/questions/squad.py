"""Reads questions from SQuAD JSON (Rajpurkar et al. 2016, 2018)."""

import collections
import dataclasses
import re

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.sanitize import preview


@dataclasses.dataclass(frozen=True)
class Question:
    """One question about a paragraph, its context."""

    id: str  # Unique in the file.
    text: str
    context: str
    answers: tuple[tuple[str, int], ...] = ()  # Texts, and starts in characters of `context`.
    impossible: bool = False  # Whether the paragraph has no answer (SQuAD 2.0).


def read_articles(path):
    """Reads the articles of a SQuAD file, the list `data`. Raises `InputError` for another file."""
    articles = storage.read_json_object(path).get("data")
    if not isinstance(articles, list):
        raise Damaged(f"{path} is not a SQuAD file: it must be an object with a list `data`.")
    return articles


def read_questions(articles, path):
    """Returns the `Question`s of `read_articles`, in file order.

    An answer whose text is not at its offset in the paragraph, or whose offset is not a whole
    number (4, 4.0, "4"), is dropped, with a warning. Raises `InputError`, with `path`, for a
    missing or mistyped field, a repeated id, or no questions.
    """
    parsed = [_parse_question(*entry) for entry in _iterate_questions(articles, path)]
    questions = [question for question, _, _ in parsed]
    if not questions:
        raise Damaged(f"{path} has no questions.")
    # As text: predictions are a JSON object, in which 1 and "1" are the same name.
    counts = collections.Counter(str(question.id) for question in questions)
    if repeated := [name for name, times in counts.items() if times > 1]:
        raise Damaged(f"{path}: question ids must be unique. Repeated: {preview(repeated[:5])}.")
    if mistyped := [(question.id, starts[0]) for question, _, starts in parsed if starts]:
        logging.warning(
            f"{path}: {len(mistyped)} questions have an answer whose answer_start is not a whole "
            f"number; these answers are dropped: {preview(mistyped[:5])}"
        )
    incomplete = [question.id for question, dropped, _ in parsed if dropped]
    if incomplete:
        logging.warning(
            f"{path}: {len(incomplete)} questions have an answer that is empty or not at its "
            f"offset; these answers are dropped: {preview(incomplete[:5])}"
        )
    return questions


def _parse_question(location, context, qa):
    """Returns (`Question`, number of misplaced answers, starts that are not whole numbers)."""
    answers = _parse_answers(qa, location)
    numbered = [(text, _whole_number(start)) for text, start in answers]
    placed = [(text, start) for text, start in numbered if start is not None]
    valid = tuple(
        (text, start)
        for text, start in placed
        if text and start >= 0 and context[start : start + len(text)] == text
    )
    mistyped = [start for _, start in answers if _whole_number(start) is None]
    question = Question(
        id=_field(qa, "id", (str, int), location),
        text=_field(qa, "question", str, location),
        context=context,
        answers=valid,
        impossible=_field(qa, "is_impossible", bool, location) if "is_impossible" in qa else False,
    )
    return question, len(placed) - len(valid), mistyped


def _iterate_questions(articles, path):
    """Yields (location for messages, context, question's dict)."""
    for i, article in enumerate(articles):
        location = f"{path}, data[{i}]"
        for j, paragraph in enumerate(_field(article, "paragraphs", list, location)):
            paragraph_location = f"{location}.paragraphs[{j}]"
            context = _field(paragraph, "context", str, paragraph_location)
            for k, qa in enumerate(_field(paragraph, "qas", list, paragraph_location)):
                yield f"{paragraph_location}.qas[{k}]", context, qa


def _parse_answers(qa, location):
    """Returns a list of (text, start as it is in the file, None if it is missing)."""
    if not isinstance(qa, dict) or qa.get("answers") is None:
        return []
    return [
        (
            _field(answer, "text", str, location),
            answer.get("answer_start"),
        )
        for answer in _field(qa, "answers", list, location)
    ]


def _whole_number(value):
    """Returns 4 for 4, 4.0, "4" and "4.0"; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r" *-?[0-9]{1,15}(\.0*)? *", value):
        value = float(value)
    is_whole = type(value) is int or (type(value) is float and value.is_integer())
    return int(value) if is_whole else None


def _field(record, name, types, location):
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, types):
        raise Damaged(
            f"{location}: {name!r} is missing or has another type. Received: "
            f"{preview(str(value if isinstance(record, dict) else record)[:60])}"
        )
    return value
