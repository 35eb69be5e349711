"""`--max_eval_examples`: evaluations during training score a seeded, stratified subset of dev."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.data.batches import Features
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.questions.spans import SpanSettings
from adapter_bert_tf.data.questions.squad import read_articles, read_questions
from adapter_bert_tf.runners.classification import runner
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.runners.questions.task_data import SpanData
from adapter_bert_tf.tasks import own_task
from adapter_bert_tf.tasks.span_decoding import DecodingSettings
from adapter_bert_tf.tasks.squad_metrics import questions_in
from tests.runners.own_data_test import NAMES, run, write
from tests.runners.squad_test import write as write_questions


def data_of(cells):
    """A task whose `dev` has these cells, and ids that count from 0; `train` has one example."""
    examples, labels, features = {}, {}, {}
    for split, known in (("train", ["no"]), ("dev", cells)):
        count = len(known)
        places = [(split, i) for i in range(count)]
        texts = [f"{split} {i}" for i in range(count)]
        examples[split] = Examples(texts, None, known, list(map(str, range(count))), places)
        labels[split] = np.array([-1 if c is None else int(c == "yes") for c in known], np.int32)
        ids = tf.ragged.constant([[i] * (i + 1) for i in range(count)], dtype=tf.int32)
        features[split] = Features(ids, ids * 0, tf.constant(labels[split]),
                                   np.arange(1, count + 1), np.zeros(count, bool))  # fmt: skip
    task = own_task("0", label="1").with_labels(("no", "yes"))
    return ClassificationData(task, examples, labels, features, 0, 16)


SUBSETS = {  # Cells of dev, most: labels of the subset.
    "in proportion": (["no"] * 6 + ["yes"] * 3, 3, {"no": 2, "yes": 1}),
    "each label": (["no"] * 99 + ["yes"], 4, {"no": 3, "yes": 1}),
    "known labels first": (["no", None, "yes", None, "no"], 2, {"no": 1, "yes": 1}),
    "all": (["no", None, "yes"], 3, {"no": 1, None: 1, "yes": 1}),
}


@pytest.mark.parametrize("case", SUBSETS)
def test_subsets(case):
    cells, most, expected = SUBSETS[case]
    data = data_of(cells)
    subset = data.with_dev_subset(most, 0)
    examples, features = subset.examples["dev"], subset.features["dev"]
    assert collections.Counter(examples.labels) == expected
    rows = [line for _, line in examples.places]
    assert rows == sorted(rows) == [int(i) for i in examples.indices]
    assert features.ids.to_list() == [[i] * (i + 1) for i in rows]
    assert features.lengths.tolist() == [i + 1 for i in rows]
    np.testing.assert_array_equal(features.labels, subset.labels["dev"])
    assert subset.with_dev_subset(most, 0).examples == subset.examples
    assert subset.examples["train"] is data.examples["train"]


def test_questions(tmp_path):
    path = str(write_questions(tmp_path, "dev", impossible=True))
    articles = read_articles(path)
    asked = read_questions(articles, path)
    data = SpanData([], asked, articles, None, SpanSettings(), DecodingSettings(), "", "squad_2",
                    None)  # fmt: skip
    subset = data.with_dev_subset(2, 0)
    assert [q.impossible for q in subset.questions] in ([True, False], [False, True])
    assert [qa["id"] for qa in questions_in(subset.articles)] == [q.id for q in subset.questions]
    assert len(list(questions_in(articles))) == 6 and data.with_dev_subset(6, 0) is data


def test_only_the_last_evaluation_scores_all(tiny_base_folder, tmp_path, monkeypatch):
    plan, counts = runner.eval_plan, []

    def counted(features, *more):
        counts.append(len(features))
        return plan(features, *more)

    monkeypatch.setattr(runner, "eval_plan", counted)
    folder = write(tmp_path / "data", rows=32)
    more = ("--do_train", "--do_eval", "--num_train_epochs=1", "--eval_every_steps=2")
    more = (*NAMES, *more, "--keep=best", "--max_eval_examples=6")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    assert counts == [6, 6, 24]
