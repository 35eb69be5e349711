"""SQuAD's JSON (Rajpurkar et al. 2016, 2018): questions about paragraphs, answers as slices."""

import collections
import dataclasses
import json

import tensorflow as tf
from absl import logging

from adapter_bert_tf.errors import InputError


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


def read_json(path):
    """The articles of a SQuAD file: what its `data` holds.

    Raises:
      InputError: when the file is missing, is no JSON or no SQuAD file.
    """
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            content = json.loads(file.read())
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {path!r}: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is no JSON: line {error.lineno}, column {error.colno} (character "
                         f"{error.pos}): {error.msg}. Is the file complete?") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the byte at offset {error.start} is not UTF-8 text.") from error
    if not (isinstance(content, dict) and isinstance(content.get("data"), list)):
        raise InputError(f"{path} is no SQuAD file: it must be an object with a list `data`.")
    return content["data"]


def read_questions(articles, path, with_answers=True):
    """List of `Question`, in file order.

    An answer that is not the slice of the paragraph where it says it starts is left out; how many
    is logged, with the first ones' ids.

    Args:
      articles: what `read_json` returns.
      path: for messages.
      with_answers: whether the answers are needed; without, they are not looked at.

    Raises:
      InputError: for a missing field, a repeated id, or a file without questions.
    """
    questions, left_out = [], []
    for number, article in enumerate(articles):
        try:
            for paragraph in article["paragraphs"]:
                for qa in paragraph["qas"]:
                    question = _question(paragraph["context"], qa, with_answers)
                    questions.append(question)
                    if len(question.answers) < len(qa.get("answers", ())) and with_answers:
                        left_out.append(question.id)
        except (KeyError, TypeError) as error:
            raise InputError(f"{path}: article {number} ({article.get('title', '?')!r}) misses or "
                             f"has another type of {error}.") from error
    repeated = [i for i, n in collections.Counter(q.id for q in questions).items() if n > 1]
    if repeated or not questions:
        raise InputError(f"{path}: question ids come twice: {repeated[:5]}." if questions else
                         f"{path} holds no questions.")
    if left_out:
        logging.warning("%s: %d questions have an answer that is not at its offset; these answers "
                        "are left out: %s", path, len(left_out), ", ".join(left_out[:5]))
    return questions


def _question(context, qa, with_answers):
    answers = [(answer["text"], answer["answer_start"])
               for answer in (qa.get("answers") or () if with_answers else ())]
    kept = tuple((text, start) for text, start in answers
                 if context[start : start + len(text)] == text)
    return Question(qa["id"], qa["question"], context, kept, bool(qa.get("is_impossible")))
