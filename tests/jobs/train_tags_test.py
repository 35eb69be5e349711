"""`abt.train(task="tags")`: words and tags as lists."""

import json
import pathlib

import numpy as np
import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.jobs import python_sentences
from adapter_bert_tf.jobs.python_data import Given
from tests import support
from tests.refusals import raises_code
from tests.runners.tagging import corpus

SMALL = {"max_seq_length": 12, "train_batch_size": 8, "learning_rate": 1e-2}


def lists(count, seed=0):
    words, tags = zip(*corpus.sentences(count, seed), strict=True)
    return list(words), list(tags)


def test_it_has_learned_and_tags(tiny_base_folder, tmp_path):
    words, tags = lists(48)
    task = abt.train(
        words, tags, task="tags", dev=lists(12, 1), output_dir=tmp_path / "out",
        base_model=tiny_base_folder, num_train_epochs=15, report=False, **SMALL,
    )  # fmt: skip
    assert task.results["eval_f1"] > 0.8 and task.labels()[0] == "O"
    text, split = task(["the cat ran", ["the", "cat"]])
    assert text["entities"][0] == split["entities"][0] | {
        "start": 4, "end": 7, "probability": text["entities"][0]["probability"]
    }  # fmt: skip
    (data,) = pathlib.Path(task.output_dir).glob("data-*")
    first = json.loads((data / "train.jsonl").open().readline())
    assert first == {"tokens": words[0], "tags": tags[0]}
    task.save(tmp_path / "adapter")
    again = abt.Predictor(tmp_path / "adapter", base=tiny_base_folder)("the cat ran")
    assert again["tags"] == text["tags"] and again["words"] == ["the", "cat", "ran"]


WORDS, TAGS = [["a", "b"], ["c"]], [["O", "B-X"], ["O"]]
REFUSED = {
    "texts": (["a b"], [["O"]], {}, "invalid: at 0"),
    "one list of tags less": (WORDS, TAGS[:1], {}, "invalid: 2 lists of words and 1"),
    "one tag less": (WORDS, [["O"], ["O"]], {}, "invalid: at 0: 2 words and 1"),
    "numbers": (WORDS, [[0, 1], [0]], {}, "invalid: at 0: 0"),
    "no lists": ("a b", "O O", {}, "invalid: 'a b'"),
    "second texts": (WORDS, TAGS, {"others": ["x"]}, "conflict: others"),
    "a dev set of words": (WORDS, TAGS, {"dev": WORDS[:1]}, "invalid: dev is"),
    "wrong dev tags": (WORDS, TAGS, {"dev": ([["a"]], [["O", "O"]])}, "invalid: dev: "),
    "unknown dev tags": (WORDS, TAGS, {"dev": ([["a"]], [["B-Y"]])}, "mismatch: 'Y'"),
    "options of tables": (WORDS, TAGS, {"multi_label": True}, "invalid: 'multi_label'"),
    "files": (WORDS, TAGS, {"dev_file": "a"}, "invalid: 'dev_file'"),
    "another task": (WORDS, TAGS, {"task": "tag"}, "invalid: 'tags'"),
    "questions": (WORDS, TAGS, {"task": "span"}, "unsupported: run_squad.py"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, tiny_base_folder, tmp_path):
    words, tags, more, expected = REFUSED[case]
    options = {"task": "tags", "base_model": tiny_base_folder, **SMALL, **more}
    with raises_code(expected):
        abt.train(words, tags, output_dir=tmp_path / "out", **options)
    assert not (tmp_path / "out" / "adapter").exists()


def test_arrays_and_tuples_are_lists():
    words = np.array([["a", "b"], ["c", "d"]])
    data = python_sentences.data_of(Given(words, (("O", "O"), ("O", "O")), None, None, ()), {})
    assert data.settings == {"do_eval": False} and data.files.keys() == {"train.jsonl"}
    lines = [json.loads(line) for line in data.files["train.jsonl"].splitlines()]
    assert [line["tokens"] for line in lines] == words.tolist()


@pytest.mark.long
def test_a_task_of_tables_by_its_name(tiny_base_folder):
    options = {"base_model": tiny_base_folder, "num_train_epochs": 1, **SMALL}
    texts = [f"a cat {word}" for word in support.WORDS[:40]]
    task = abt.train(texts, list(range(40)), task="regression", **options)
    assert isinstance(task("a cat")["score"], float)
