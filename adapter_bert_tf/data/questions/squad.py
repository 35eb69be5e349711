"""SQuAD's JSON (Rajpurkar et al. 2016, 2018): questions about paragraphs, answers as slices."""

import collections
import dataclasses
import json

import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json, preview


@dataclasses.dataclass(frozen=True)
class Question:
    """One question.

    Args:
      id: string, unique in the file.
      text: the question.
      context: the paragraph.
      answers: tuple of (text, start in characters of `context`); empty if unknown or impossible.
      impossible: whether the paragraph holds no answer (SQuAD 2.0).
    """

    id: str
    text: str
    context: str
    answers: tuple[tuple[str, int], ...] = ()
    impossible: bool = False


def read_articles(path):
    """The articles of a SQuAD file: what its `data` holds.

    Raises:
      InputError: when the file is missing, is no JSON or no SQuAD file.
    """
    try:
        content = parse_json(storage.read_bytes(path))
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {path!r}: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} is no JSON: line {error.lineno}, column {error.colno} (character "
            f"{error.pos}): {error.msg}. Is the file complete?"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the byte at offset {error.start} is not UTF-8 text.") from error
    except ValueError as error:
        raise InputError(f"{path} is no SQuAD file: {error}.") from error
    if not (isinstance(content, dict) and isinstance(content.get("data"), list)):
        raise InputError(f"{path} is no SQuAD file: it must be an object with a list `data`.")
    return content["data"]


def read_questions(articles, path):
    """List of `Question`, in file order.

    An answer that is not the slice of the paragraph where it says it starts is left out; how many
    is logged, with the first ones' ids.

    Args:
      articles: what `read_articles` returns.
      path: for messages.

    Raises:
      InputError: for a field that is missing or of another type, with its place; a repeated id; a
        file without questions.
    """
    read = [_question(*entry) for entry in _entries(articles, path)]
    questions = [question for question, _ in read]
    _require_ids(questions, path)
    left_out = [question.id for question, lost in read if lost]
    if left_out:
        logging.warning(
            "%s: %d questions have an answer that is not at its offset; these answers "
            "are left out: %s",
            path,
            len(left_out),
            preview(left_out[:5]),
        )
    return questions


def _question(place, context, qa):
    """(`Question`, number of its answers that are left out)."""
    answers = _answers(qa, place)
    kept = tuple(
        (text, start)
        for text, start in answers
        if text and start >= 0 and context[start : start + len(text)] == text
    )
    question = Question(
        id=_field(qa, "id", (str, int), place),
        text=_field(qa, "question", str, place),
        context=context,
        answers=kept,
        impossible=_field(qa, "is_impossible", bool, place) if "is_impossible" in qa else False,
    )
    return question, len(answers) - len(kept)


def _require_ids(questions, path):
    """Raises `InputError` where no question is, or two have one id."""
    if not questions:
        raise InputError(f"{path} holds no questions.")
    # As text, because predictions are a JSON object: 1 and "1" would be one name there.
    count = collections.Counter(str(question.id) for question in questions)
    if len(count) < len(questions):
        repeated = [name for name, times in count.items() if times > 1]
        raise InputError(f"{path}: question ids come twice: {preview(repeated[:5])}.")


def _entries(articles, path):
    """Yields (place for messages, context, question's dict)."""
    for i, article in enumerate(articles):
        place = f"{path}, data[{i}]"
        for j, paragraph in enumerate(_field(article, "paragraphs", list, place)):
            inner = f"{place}.paragraphs[{j}]"
            context = _field(paragraph, "context", str, inner)
            for k, qa in enumerate(_field(paragraph, "qas", list, inner)):
                yield f"{inner}.qas[{k}]", context, qa


def _answers(qa, place):
    """List of (text, start); a start that is not there is -1."""
    if not isinstance(qa, dict) or qa.get("answers") is None:
        return []
    return [
        (
            _field(answer, "text", str, place),
            answer["answer_start"] if type(answer.get("answer_start")) is int else -1,
        )
        for answer in _field(qa, "answers", list, place)
    ]


def _field(holder, name, types, place):
    value = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(value, types):
        raise InputError(
            f"{place}: {name!r} is missing or of another type. Received: "
            f"{preview(str(value if isinstance(holder, dict) else holder)[:60])}"
        )
    return value
