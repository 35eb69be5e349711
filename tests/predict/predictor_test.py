"""A `Predictor` answers as the adapter's model does, whatever the texts come in."""

import json
import pathlib
import shutil

import numpy as np
import pandas
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.data.batches import UNTRACED
from adapter_bert_tf.predict.predictor import Predictor
from adapter_bert_tf.predict.tables import AT_ONCE
from adapter_bert_tf.task_types.batched_inference import class_logits
from tests.refusals import raises_code
from tests.support import WORDS

BEFORE = pathlib.Path(__file__).parent.parent / "golden" / "written_before"
PAIRS, SCORES, SPANS = (str(BEFORE / "adapters" / name) for name in ("houlsby", "scores", "squad"))
BASE = str(BEFORE / "base")


def texts(count, seed=0, longest=12):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(count)]


@pytest.fixture(scope="module")
def pairs():
    return Predictor(PAIRS, base=BASE, batch_size=4)


@pytest.fixture(scope="module")
def several():
    more = {"full": str(BEFORE / "adapters" / "full"), "again": PAIRS}
    return Predictor(PAIRS, more, {"score": SCORES}, base=abt.load_base(BASE))


def test_probabilities_are_those_of_the_model_in_the_order_of_the_texts(pairs):
    first, second = texts(11), texts(11, seed=1)
    answers = pairs(first, second)
    encoder = abt.TextEncoder(pairs.model.base.vocabulary, 16)
    logits = pairs.model(encoder.inputs(first, second), adapter="mrpc")
    expected = tf.nn.softmax(logits).numpy()
    found = [list(answer["probabilities"].values()) for answer in answers]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [answer["label"] for answer in answers] == [str(i) for i in expected.argmax(-1)]
    assert list(answers[0]["probabilities"]) == ["0", "1"]


def test_labels_are_in_the_order_of_the_probabilities(pairs, several):
    assert pairs.labels() == ["0", "1"] == list(pairs("a", "b")["probabilities"])
    assert several.labels("score") == [] == Predictor(SPANS, base=BASE).labels()
    with raises_code("invalid", "adapter"):
        several.labels()


def test_one_text_a_list_pairs_and_a_stream_get_the_same(pairs):
    first, second = texts(5), texts(5, seed=1)
    expected = pairs(first, second)
    assert pairs(list(zip(first, second, strict=True))) == expected
    assert list(pairs.stream(zip(first, second, strict=True))) == expected
    one = pairs(first[3], second[3])
    assert one["label"] == expected[3]["label"]
    assert one["probabilities"] == pytest.approx(expected[3]["probabilities"], abs=1e-6)
    assert pairs([], []) == []


def test_more_rows_than_are_in_memory_at_once(pairs):
    rows = list(zip(texts(7), texts(7, seed=1), strict=True)) * (AT_ONCE // 7 + 2)
    expected = pairs(rows[:7])
    for number, answer in enumerate(pairs.stream(iter(rows))):
        label = expected[number % 7]["label"]
        assert answer["probabilities"][label] == pytest.approx(
            expected[number % 7]["probabilities"][label], abs=1e-6
        )
    assert number + 1 == len(rows) > AT_ONCE


def test_several_adapters_one_for_each_row(several):
    assert several.adapters == ["mrpc", "full", "again", "score"]
    first, second = texts(8), texts(8, seed=1)
    names = ["mrpc", "full", "again", "mrpc", "full", "full", "again", "mrpc"]
    for number, answer in enumerate(several(first, second, adapter=names)):
        alone = several(first[number], second[number], adapter=names[number])
        assert answer["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-6)
    scores = several(first, adapter="score")
    assert [set(answer) for answer in scores] == [{"score"}] * 8
    assert len({answer["score"] for answer in scores}) > 1


@pytest.mark.long
def test_answers_are_slices_of_their_contexts():
    predictor = Predictor(SPANS, base=BASE, batch_size=3)
    questions, contexts = texts(9, longest=4), texts(9, seed=1, longest=60)
    answers = predictor(questions, contexts)
    for answer, context in zip(answers, contexts, strict=True):
        assert answer["answer"] == context[answer["start"] : answer["end"]] != ""
        assert 0 < answer["probability"] <= 1
    one = predictor(questions[5], contexts[5])
    assert one["answer"] == answers[5]["answer"]
    assert one["score"] == pytest.approx(answers[5]["score"], abs=1e-4)


def test_answers_of_questions_are_those_of_the_command():
    """The expected were written by `run_squad.py` when the adapter was trained."""
    expected = json.loads((BEFORE / "expected.json").read_text())["adapters"]["squad"]["answers"]
    articles = json.loads((BEFORE / "squad" / "dev.json").read_text())["data"]
    asked = [
        (question["id"], question["question"], paragraph["context"])
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    answers = Predictor(SPANS, base=BASE)([row[1:] for row in asked])
    found = {row[0]: answer["answer"] for row, answer in zip(asked, answers, strict=True)}
    assert found == expected


def test_a_data_frame_keeps_its_columns(pairs):
    frame = pandas.DataFrame(
        {"id": [7, 8, 9], "#1 String": texts(3), "#2 String": [*texts(2, seed=1), None]},
        index=["a", "b", "c"],
    )
    before = frame.copy()
    found = pairs(frame)
    pandas.testing.assert_frame_equal(frame, before)
    assert list(found.columns) == [*frame.columns, "label", "probability_0", "probability_1"]
    assert list(found.index) == ["a", "b", "c"]
    expected = pairs(list(frame["#1 String"]), [*frame["#2 String"][:2], ""])
    assert list(found["label"]) == [answer["label"] for answer in expected]
    renamed = frame.rename(columns={"id": "label", "#1 String": "x", "#2 String": "y"})
    again = pairs(renamed, text_a_column="x", text_b_column="y")
    assert list(again["label"]) == [7, 8, 9]
    assert list(again["predicted_label"]) == list(found["label"])
    assert list(pairs(frame.iloc[:0]).columns) == list(found.columns)
    series = pairs(frame["#1 String"], pandas.Series([*frame["#2 String"][:2], ""]))
    assert series == expected
    with raises_code("invalid", "predict_file"):
        pairs.predict_file(frame, "answers.csv")


def test_a_categorical_column_may_lack_a_text(pairs):
    frame = pandas.DataFrame({"text_a": ["a", None], "text_b": ["b", "c"]})
    expected = list(pairs(frame)["probability_1"])
    assert list(pairs(frame.astype("category"))["probability_1"]) == expected


FRAMES = {  # A frame with a column of texts and one of others: how they are named.
    "columns are numbered": ([0, 1], {"text_a_column": 0, "text_b_column": 1}),
    "in another order": ([1, 0], {"text_a_column": 1, "text_b_column": 0}),
    "numbered further on": ([30, 20], {"text_a_column": 30, "text_b_column": "20"}),
    "by number, without such a name": (["a", "b"], {"text_a_column": 0, "text_b_column": 1}),
}


@pytest.mark.parametrize("case", FRAMES)
def test_columns_of_a_frame_may_be_numbers(case, pairs):
    names, columns = FRAMES[case]
    first, second = texts(3), texts(3, seed=1)
    found = pairs(pandas.DataFrame(zip(first, second, strict=True), columns=names), **columns)
    expected = pairs(first, second)
    assert list(found["label"]) == [answer["label"] for answer in expected]
    shares = [answer["probabilities"]["1"] for answer in expected]
    np.testing.assert_allclose(found["probability_1"], shares, atol=1e-6)


WRONG = {
    "no adapter": (lambda p: Predictor(base=BASE), "invalid: adapter"),
    "an unknown adapter": (lambda p: p("a", "b", adapter="x"), "invalid: 'mrpc'"),
    "one text of two": (lambda p: p("a"), "mismatch: 'mrpc'"),
    "two texts of one": (lambda p: p("a", "b", adapter="score"), "mismatch: 'score'"),
    "no text": (lambda p: p(["a", 2], adapter="score"), "mismatch: 'score'"),
    "a list of adapters": (lambda p: Predictor([BASE]), "invalid: one argument each"),
    "a dict of none": (lambda p: Predictor({}), "invalid: one argument each"),
    "others that are none": (lambda p: p(["a"], 5), "invalid: must have one text for each"),
    "two columns of a name": (
        lambda p: p(
            pandas.DataFrame([["a", "b"]], columns=["x", "x"]), adapter="score", text_a_column="x"
        ),
        "invalid: 'x'",
    ),
    "columns without names": (
        lambda p: p(pandas.DataFrame([["a", "b"]]), adapter="score"),
        "missing: set text_a_column",
    ),
    "something else": (lambda p: p(7, adapter="score"), "invalid: a text, a list, or a DataFrame"),
    "columns of a list": (
        lambda p: p(["a"], text_a_column="x", adapter="score"),
        "invalid: text_b_column",
    ),
    "others of a frame": (
        lambda p: p(pandas.DataFrame({"x": ["a"]}), others=["b"], adapter="score"),
        "invalid: text_b_column",
    ),
    "too few others": (
        lambda p: p(["a", "b"], ["c"], adapter="mrpc"),
        "invalid: must have one text for each",
    ),
    "one text for many": (
        lambda p: p(["a", "b"], "c", adapter="mrpc"),
        "invalid: must have one text for each",
    ),
    "too few names": (lambda p: p(["a", "b"], adapter=["score"]), "invalid: adapter"),
    "too many names": (lambda p: p(["a"], adapter=["score"] * 2), "invalid: names"),
    "nobody named": (lambda p: p("a"), "invalid: adapter"),
    "lists for names": (lambda p: p("a", adapter=[["score"]]), "invalid: 'score'"),
    "a list for a name": (lambda p: p.labels([["score"]]), "invalid: 'score'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case, pairs, several):
    call, message = WRONG[case]
    predictor = pairs if case == "one text of two" else several
    with raises_code(message):
        call(predictor)


def test_a_directory_that_is_damaged_before_its_base_is_known(tmp_path):
    folder = shutil.copytree(PAIRS, tmp_path / "a")
    (folder / "adapter_config.json").write_bytes(b"\xff\xfe\0")
    with raises_code("damaged", "adapter_config.json"):
        Predictor(folder)


def test_texts_of_any_characters_are_answered(pairs):
    odd = ["", "\ud800 house", "\x00", "a\u2028b", "🏠" * 40, "house " * 500]
    assert len(pairs(odd, odd)) == len(odd)


CUT = {  # Adapter, rows: what is said of them.
    "none": (PAIRS, [("a", "b")] * 3, ()),
    "one of two": (PAIRS, [("a", "b"), ("house " * 16, "b")], ("1 of 2 rows (50.0%)", "h=16")),
    "questions": (SPANS, [("cat " * 40, "the cat"), ("cat", "a cat")], ("1 of 2", "query_length=")),
    "contexts are read in windows": (SPANS, [("cat", "the cat " * 60)], ()),
}  # fmt: skip


@pytest.mark.parametrize("case", CUT)
def test_rows_that_are_cut_are_counted_once(case, tmp_path, caplog):
    adapter, rows, said = CUT[case]
    predictor = Predictor(adapter, base=BASE)
    lines = [json.dumps(dict(zip("ab", row, strict=True))) for row in rows]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    columns = {"text_a_column": "a", "text_b_column": "b"}
    for answer in (
        lambda: predictor(rows),
        lambda: predictor(pandas.DataFrame(rows, columns=["a", "b"]), **columns),
        lambda: predictor.predict_file(tmp_path / "q.jsonl", tmp_path / "out.jsonl", **columns),
    ):
        caplog.clear()
        answer()
        assert caplog.text.count("and cut") == bool(said)
        assert all(part in caplog.text for part in said)


def test_one_text_that_is_cut(pairs, caplog):
    pairs("house " * 16, "b")
    assert "1 of 1 rows (100.0%)" in caplog.text


def test_rows_of_many_parts_are_counted_together(pairs, tmp_path, caplog):
    long = " ".join(["cat"] * 20)
    (tmp_path / "q.csv").write_text("text_a,text_b\n" + f"{long},dog\n" + "cat,dog\n" * AT_ONCE)
    pairs.predict_file(tmp_path / "q.csv", tmp_path / "out.csv")
    assert caplog.text.count("and cut") == 1
    assert f"q.csv: 1 of {AT_ONCE + 1:,} rows" in caplog.text


def test_batches_of_adapters_with_more_and_fewer_labels(pairs):
    """A batch is as wide as the adapter with most labels in it; another may be narrower."""
    asked = texts(7)
    run = lambda rows, inputs: np.tile(rows[:, np.newaxis], 2 + int(0 in rows))  # noqa: E731
    encoder = abt.TextEncoder(pairs.model.base.vocabulary, 16)
    found, _ = class_logits(run, [asked], encoder, batch_size=3)
    assert [row[0] for row in found] == list(range(7))
    assert {len(row) for row in found} == {2, 3}


def test_one_batch_is_read_as_several_are(pairs):
    """Also when the encoder is traced, after `UNTRACED` batches."""
    asked = [texts(7), ["house " * number for number in range(7)]]
    encoder, seen = abt.TextEncoder(pairs.model.base.vocabulary, 8), []

    def run(rows, inputs):
        ids, mask, types = (inputs[f"input_{name}"] for name in ("word_ids", "mask", "type_ids"))
        for row, *own, kept in zip(rows, ids, types, mask == 1, strict=True):
            seen.append((row, *(values[kept].tolist() for values in own)))
        return np.zeros((len(rows), 2), np.float32)

    _, expected_cut = class_logits(run, asked, encoder, batch_size=3)
    expected, longest = sorted(seen), max(len(ids) for _, ids, *_ in seen)
    assert longest == 8 and expected_cut.any() and not expected_cut.all()
    for _ in range(UNTRACED + 2):
        seen.clear()
        found, cut = class_logits(run, asked, encoder, batch_size=7)
        assert seen == expected and len(found) == 7
        np.testing.assert_array_equal(cut, expected_cut)
