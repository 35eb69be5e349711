"""SavedModels of one task: from raw text what the pipeline computes, anywhere, without us."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.base import load_base
from adapter_bert_tf.data.questions import spans as windows
from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.tasks.span_decoding import Decoder, DecodingSettings
from tests import support
from tests.refusals import raises_code

A = [
    "the cat sat",
    "rain",
    "",
    "Good, red house never!",
    "it is not bad but was very big today " * 9,
]
B = ["a dog ran", "sun", "who", "why?", "they walk"]

CLIENT = """
import json, sys
import tensorflow as tf, tensorflow_text
model = tf.saved_model.load(sys.argv[1])
answers = model.signatures["serving_default"](**{k: tf.constant(v) for k, v in json.loads(sys.argv[2]).items()})
assert not [name for name in sys.modules if name.startswith(("adapter_bert_tf", "official", "tf_keras"))]
print(json.dumps({k: [x.decode() if isinstance(x, bytes) else x for x in v.numpy().ravel().tolist()] for k, v in answers.items()}))
"""  # noqa: E501


def _random(model, seed=0):
    rng = np.random.default_rng(seed)
    for variable in model.variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.2)


def _config(base, head="classification", labels=("no", "yes"), **inputs):
    return support.adapter_config(
        base, None, "full", labels, head=head, inputs=dict(TASK_TYPES[head].inputs) | inputs
    )


@pytest.mark.parametrize("texts", [(A,), (A, B)], ids=["one", "two"])
@pytest.mark.parametrize("labels", [("no", "maybe", "yes"), ()], ids=["classes", "score"])
def test_it_computes_what_the_model_computes(texts, labels, tiny_base_folder, tmp_path):
    base = load_base(tiny_base_folder)
    model = TASK_TYPES["classification" if labels else "regression"].new_model(
        base.build_encoder(), len(labels) or 1
    )
    _random(model)
    config = _config(base, labels=labels, texts=len(texts), max_seq_length=16)
    export_task(str(tmp_path / "model"), model, config, base.vocabulary)
    expected = model(TextEncoder(base.vocabulary, 16).inputs(*texts)).numpy()
    strings = dict(zip(("text_a", "text_b"), texts, strict=False))
    served = tf.saved_model.load(str(tmp_path / "model"))
    for rows in (slice(0, 5), slice(2, 3), slice(0, 0)):  # Any batch size.
        output = served.signatures["serving_default"](
            **{name: tf.constant(column[rows], tf.string) for name, column in strings.items()}
        )
        if not labels:
            np.testing.assert_allclose(output["score"], expected[rows, 0], atol=1e-5)
            continue
        np.testing.assert_allclose(output["logits"], expected[rows], atol=1e-5)
        np.testing.assert_allclose(
            output["probabilities"], tf.nn.softmax(expected[rows]), atol=1e-5
        )
        assert [label.decode() for label in output["label"].numpy()] == [
            labels[i] for i in expected[rows].argmax(-1)
        ]
    if len(texts) == 2:
        with pytest.raises(tf.errors.InvalidArgumentError, match="same number of rows"):
            served.signatures["serving_default"](text_a=tf.constant(A), text_b=tf.constant(B[1:]))
    inputs = TextEncoder(base.vocabulary, 16).inputs(*texts)
    by_ids = served.signatures["ids"](**inputs)
    np.testing.assert_allclose(
        by_ids["score" if not labels else "logits"],
        expected[:, 0] if not labels else expected,
        atol=1e-5,
    )


@pytest.mark.long
def test_it_runs_elsewhere_without_the_sources(tmp_path):
    source = tmp_path / "base"
    support.write_google(source)
    base = load_base(str(source))
    model = TASK_TYPES["classification"].new_model(base.build_encoder(), 2)
    _random(model)
    expected = model(TextEncoder(base.vocabulary, 128).inputs(A[:3])).numpy()
    export_task(str(tmp_path / "model"), model, _config(base), base.vocabulary)
    shutil.rmtree(source)
    shutil.move(tmp_path / "model", tmp_path / "moved")
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, tmp_path / "moved", json.dumps({"text_a": A[:3]})],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if "KERAS" not in name},
    )
    answers = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(np.reshape(answers["logits"], (3, 2)), expected, atol=1e-5)
    assert answers["classes"] == ["no", "yes"] * 3


CONTEXTS = [
    ("who sat", "The cat sat on the mat. A dog ran in."),
    ("where is the big red house today", "rain and sun " * 30 + "the red house walks again. " * 8),
    ("", "it was good"),
    ("why", ""),
    ("why not", "   "),
    ("why?", "C\u0301a\u0302t \U0001f600 sa\u0308t on a blue\u0301 mat, unplayable -- walked"),
    ("who " * 40, "the dog ran. " * 30),
]


@pytest.mark.parametrize("null_allowed", support.seldom([False, True], (True,)))
@pytest.mark.long
def test_answers_are_those_of_the_decoder(null_allowed, tiny_base_folder, tmp_path):
    base = load_base(tiny_base_folder)
    model = TASK_TYPES["span"].new_model(base.build_encoder(), 2)
    _random(model, 3)
    settings = windows.SpanSettings(max_seq_length=24, doc_stride=5, max_query_length=9)
    decoding = DecodingSettings(
        n_best_size=3,
        max_answer_length=4,
        null_allowed=null_allowed,
        null_score_diff_threshold=-0.2,
    )
    config = _config(base, "span", ("start", "end"), **settings.__dict__, **decoding.__dict__)
    export_task(str(tmp_path / "model"), model, config, base.vocabulary)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    questions = [Question(str(i), *pair) for i, pair in enumerate(CONTEXTS)]
    decoder = Decoder(decoding)
    for window in windows.make_windows(questions, TextEncoder(base.vocabulary, 24), settings):
        ids = window.ids[np.newaxis]
        types = (np.arange(len(window.ids)) >= window.context_begin).astype("i4")[np.newaxis]
        logits = model(
            {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": types}
        ).numpy()
        decoder.add(
            window.question,
            logits[0],
            window.context_begin,
            window.starts,
            window.ends,
            window.is_best,
        )
    output = served(
        question=tf.constant([q for q, _ in CONTEXTS]),
        context=tf.constant([c for _, c in CONTEXTS]),
    )
    kinds = set()
    for i, question in enumerate(questions):
        text, rows, _ = decoder.answer(i, question)
        assert output["answer"][i].numpy().decode() == text
        best = next(row for row in rows if row["text"] == text)
        score = best["start_logit"] + best["end_logit"]
        assert float(output["score"][i]) == pytest.approx(score, abs=1e-4)
        assert question.context[int(output["start"][i]) : int(output["end"][i])] == text
        kinds.add(bool(text))
    assert kinds == {True, False}


@pytest.mark.long
def test_no_questions_and_unequal_columns(tiny_base_folder, tmp_path):
    base = load_base(tiny_base_folder)
    model = TASK_TYPES["span"].new_model(base.build_encoder(), 2)
    config = _config(base, "span", ("start", "end"), max_seq_length=24, max_query_length=9)
    export_task(str(tmp_path / "model"), model, config, base.vocabulary)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    none = tf.constant([], tf.string)
    assert served(question=none, context=none)["answer"].shape == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="same number of rows"):
        served(question=tf.constant(["who", "why"]), context=tf.constant(["it was good"]))


@pytest.mark.parametrize("kind", ["classification", "regression", "multi_label", "span"])
@pytest.mark.long
def test_one_string_is_a_batch_of_one(kind, tiny_base_folder, tmp_path):
    base = load_base(tiny_base_folder)
    labels = {"span": ("start", "end"), "regression": ()}.get(kind, ("no", "yes"))
    model = TASK_TYPES[kind].new_model(base.build_encoder(), len(labels) or 1)
    limits = {"max_seq_length": 24} | ({"max_query_length": 9} if kind == "span" else {"texts": 2})
    config = _config(base, kind if labels else "classification", labels, **limits)
    export_task(str(tmp_path / "model"), model, config, base.vocabulary)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    names = TASK_TYPES[kind].text_names
    texts = dict(zip(names, ("who sat", "The cat sat on the mat."), strict=True))
    one = served(**{name: tf.constant(text) for name, text in texts.items()})
    batch = served(**{name: tf.constant([text]) for name, text in texts.items()})
    for name, value in batch.items():
        np.testing.assert_array_equal(one[name], value)


def test_something_else_is_not_replaced(tiny_base_folder, tmp_path):
    base = load_base(tiny_base_folder)
    model = TASK_TYPES["classification"].new_model(base.build_encoder(), 2)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter_1.txt").write_text("It was a dark night.")
    with raises_code("occupied", "'chapter_1.txt'"):
        export_task(str(tmp_path / "thesis"), model, _config(base), base.vocabulary)
    for _ in range(2):
        export_task(str(tmp_path / "model"), model, _config(base), base.vocabulary)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "thesis"]
