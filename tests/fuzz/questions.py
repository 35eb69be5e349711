"""SQuAD's JSON, and the windows kept of it."""

import functools
import json
import os
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.questions import records
from adapter_bert_tf.data.questions.spans import SpanSettings, Window, make_windows
from adapter_bert_tf.data.questions.squad import read_articles, read_questions
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.runners.questions.task_data import digest
from adapter_bert_tf.tasks.squad_metrics import count_unlabelled, evaluate_v1, evaluate_v2
from tests import support
from tests.fuzz import values
from tests.fuzz.cases import Case

CONTEXT = "the cat sat on the mat . it was very good ."
SOUND = {
    "version": "1.1",
    "data": [
        {
            "title": "a",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "q1",
                            "question": "who sat ?",
                            "answers": [{"text": "the cat", "answer_start": 0}],
                        },
                        {"id": 2, "question": "why ?", "answers": [], "is_impossible": True},
                    ],
                },
                {"context": "a dog", "qas": [{"id": "q3", "question": "x"}]},
            ],
        }
    ],
}
SETTINGS = SpanSettings(max_seq_length=16, doc_stride=4, max_query_length=4)


def cases():
    """Question files, most of them nearly sound."""
    anything = values.changed(SOUND) | values.json_values()
    return values.json_bytes(anything).map(lambda content: Case({"questions.json": content}))


def read(folder, settings):
    """Reads, windows and scores; every question has its windows, in order."""
    path = str(folder / "questions.json")
    articles = read_articles(path)
    questions = read_questions(articles, path)
    assert len(digest(questions)) == 64
    windows = list(make_windows(questions, _encoder(), SETTINGS))
    numbers = [window.question for window in windows]
    assert numbers == sorted(numbers) and set(numbers) == set(range(len(questions)))
    assert all(len(window.ids) <= SETTINGS.max_seq_length for window in windows)
    if not count_unlabelled(articles):
        answers = {question.id: "the cat" for question in questions}
        version_2 = any(question.impossible for question in questions)
        (evaluate_v2 if version_2 else evaluate_v1)(articles, answers)


@functools.cache
def _encoder():
    with tempfile.TemporaryDirectory() as folder:
        support._write_common(folder, "config.json", support.CONFIG, support.VOCABULARY)
        return TextEncoder(read_vocabulary(f"{folder}/vocab.txt"), SETTINGS.max_seq_length)


NAME = "0123abcd"  # Of the shards; a real one is by chance.


@st.composite
def caches(draw):
    """A folder of windows, whole or with damaged shards, with a damaged note of what is whole."""
    place, whole = _whole_cache()
    note = values.changed(json.loads(whole[place])) | values.json_values()
    files = whole | {place: draw(values.json_bytes(note))}
    if draw(st.booleans()):
        damaged = draw(st.sampled_from(sorted(whole.keys() - {place})))
        files |= {damaged: draw(st.binary(max_size=20))}
    if draw(st.integers(0, 5)) == 0:
        files = {place: None}
    return Case(files)


def counted(count):
    """A folder of whole windows with another number of them in its note."""
    place, whole = _whole_cache()
    note = json.loads(whole[place]) | {"count": count}
    return Case(whole | {place: json.dumps(note).encode()})


@functools.cache
def _whole_cache():
    """Path of the note, and the contents of all files that are kept of one window, by path."""
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.basename(_kept(folder).prefix)
        files = {
            os.path.relpath(path, folder).replace(kept, NAME): path.read_bytes().replace(
                kept.encode(), NAME.encode()
            )
            for path in pathlib.Path(folder).rglob("*.*")
        }
    (note,) = (path for path in files if path.endswith(records.DONE_FILE))
    return note, files


def _kept(folder):
    row = np.zeros(3, np.int32)
    window = Window(0, row, 1, row, row, row.astype(bool))
    return records.cached_records(str(folder), {}, lambda: iter([window]))


def cache(folder, settings):
    """What is kept is read whole, or made anew."""
    found = _kept(folder)
    read = sum(1 for _ in tf.data.TFRecordDataset(found.files()))
    assert found.count == read == 1, f"{found.count}, {read}"
