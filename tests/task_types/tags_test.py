"""Tags from saved adapters: a predictor, a batch of several adapters and SavedModels agree."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pandas
import pytest
import tensorflow as tf
import tf_keras

import adapter_bert_tf as abt
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.store.combining.combine import average
from adapter_bert_tf.task_types.tags import TAGS, WordLogits
from tests.refusals import raises_code

LABELS = {
    "names": ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"],
    "more": ["O", "B-LOC", "I-LOC", "B-PER", "I-PER", "B-SUN", "I-SUN"],
    "ends": ["O", "B-A", "I-A", "E-A", "S-A"],
    "speech": ["DET", "NOUN", "VERB"],
    "classes": ["no", "yes"],
}
SHORT = {"max_seq_length": 16, "stride": 4}
KINDS = {name: {"head": "tags"} | SHORT for name in ("names", "more")} | {
    "ends": {"head": "tags", "scheme": "BIOES", "decoding": "argmax"} | SHORT,
    "speech": {"head": "tags", "scheme": "plain"} | SHORT,
    "classes": {"max_seq_length": 16},
}
LONG = "The cat, sat on\u0301 the \U0001f600 mat in a red house! "
TEXTS = [LONG * 3, "", " \n", "the cat", "rain \ufe0f sun", LONG * 5, "We walk.", "\ufffd\x00 a"]


@pytest.fixture(scope="module")
def model(tiny_base_folder):
    """Adapters with random weights."""
    tf_keras.utils.set_random_seed(0)
    made = abt.AdapterModel(abt.load_base(tiny_base_folder))
    rng = np.random.default_rng(0)
    for name, inputs in KINDS.items():
        made.add_adapter(name, LABELS[name], abt.AdapterConfig(4), **inputs)
        for key, variable in made._tasks[name].values.items():
            variable.assign_add(rng.normal(size=variable.shape) * (0.5 if "head" in key else 0.2))
    return made


@pytest.fixture(scope="module")
def folders(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tags")
    for name in KINDS:
        model.save_adapter(name, folder / name)
    return {name: folder / name for name in KINDS}


@pytest.fixture(scope="module")
def predictor(folders, model):
    return abt.Predictor(folders, base=model.base, batch_size=3)


def assert_same(found, expected):
    """Answers are equal; their numbers may differ by the float error of another batch width."""
    numbers = ([], [])
    texts = [
        json.loads(json.dumps(answers), parse_float=lambda text, own=own: own.append(float(text)))
        for answers, own in zip((found, expected), numbers, strict=True)
    ]
    assert texts[0] == texts[1]
    np.testing.assert_allclose(*numbers, atol=1e-5)


def entities(answer):
    return [(e["text"], e["type"], e["start"], e["end"]) for e in answer["entities"]]


def test_offsets_are_characters_of_the_text(predictor):
    answers = predictor(TEXTS, adapter="names")
    assert sum(len(answer["entities"]) for answer in answers) > 50
    for text, answer in zip(TEXTS, answers, strict=True):
        assert len(answer["words"]) == len(answer["tags"])
        for entity in answer["entities"]:
            assert text[entity["start"] : entity["end"]] == entity["text"]
            assert 0 < entity["probability"] <= 1
    assert answers[1] == answers[2] == {"entities": [], "words": [], "tags": []}
    assert answers[4]["words"] == ["rain", "\ufe0f", "sun"] and answers[4]["tags"][1] == "O"


def test_answers_do_not_depend_on_the_batch(predictor):
    together = predictor(TEXTS, adapter="names")
    assert_same([predictor(text, adapter="names") for text in TEXTS], together)
    names = list(KINDS)
    rows = [(text, name) for text in TEXTS for name in names]
    mixed = predictor([text for text, _ in rows], adapter=[name for _, name in rows])
    for name in names:
        own = [answer for answer, (_, other) in zip(mixed, rows, strict=True) if other == name]
        assert_same(own, predictor(TEXTS, adapter=name))


def test_plain_tags_have_probabilities(predictor):
    answer = predictor("the cat.", adapter="speech")
    assert list(answer) == ["words", "tags", "probabilities"]
    assert answer["words"] == ["the", "cat", "."] and {*answer["tags"]} <= {*LABELS["speech"]}
    assert all(0 < value <= 1 for value in answer["probabilities"])
    first, unread, last = predictor("rain \ufe0f sun", adapter="speech")["probabilities"]
    assert unread is None and 0 < first <= 1 and 0 < last <= 1


def test_lists_of_words_stay_words(predictor):
    rows = [["the", "cat"], ("New York", "\ud800"), [], ["the cat"]]
    answers = predictor(rows, adapter="names")
    expected = [["the", "cat"], ["New York", "?"], [], ["the cat"]]
    assert [answer["words"] for answer in answers] == expected
    for answer in answers:
        for entity in answer["entities"]:  # Offsets are numbers of words.
            words = answer["words"][entity["start"] : entity["end"]]
            assert entity["text"] == " ".join(words)
    split = predictor(["the cat", ["the", "cat"]], adapter="names")
    assert split[0]["tags"] == split[1]["tags"]
    frame = predictor(pandas.DataFrame({"text": ["the cat", ["the", "cat"]]}), adapter="names")
    assert list(frame["tags"]) == [answer["tags"] for answer in split]


def test_arrays_of_words_are_lists_of_words(predictor):
    """As pandas reads columns of words from Parquet files."""
    words = [["the", "cat"], ["New York"], []]
    arrays = [np.array(row, object) for row in words]
    expected = predictor(words, adapter="names")
    given = {
        "a list": arrays,
        "strings": list(map(np.array, (["the", "cat"], ["New York"], np.array([], "U")))),
        "a series": pandas.Series(arrays),
        "series": list(map(pandas.Series, arrays)),
    }
    for what, rows in given.items():
        assert predictor(rows, adapter="names") == expected, what
    assert list(predictor.stream(arrays, adapter="names")) == expected
    frame = predictor(pandas.DataFrame({"text": arrays}), adapter="names")
    assert list(frame["tags"]) == [answer["tags"] for answer in expected]
    with raises_code("mismatch", "names"):
        predictor([np.array(["a", 1], object)], adapter="names")


@pytest.mark.parametrize("row", [("a", "b"), [["a"], "b"], [1], None])
def test_rows_that_are_neither(row, predictor):
    with raises_code("mismatch", "names", "one text, or a list of its words"):
        list(predictor.stream([row], adapter="names"))


def test_a_file_gets_lists_as_json(predictor, tmp_path):
    (tmp_path / "texts.csv").write_text("text\nthe cat sat\n")
    for name in ("answers.csv", "answers.jsonl"):
        assert predictor.predict_file(tmp_path / "texts.csv", tmp_path / name, "names") == 1
    line = json.loads((tmp_path / "answers.jsonl").read_text())
    answer = predictor("the cat sat", adapter="names")
    assert_same(line, {"text": "the cat sat", **answer})
    cells = pandas.read_csv(tmp_path / "answers.csv")
    assert list(cells) == ["text", "entities", "words", "tags"]
    assert_same(json.loads(cells["entities"][0]), answer["entities"])


def served_entities(outputs):
    """The flat outputs of a signature as lists of each text."""
    splits = outputs["row_splits"].numpy()
    values = [
        outputs[f"entity_{name}"].numpy().tolist() for name in ("text", "type", "start", "end")
    ]
    rows = [
        (text.decode(), kind.decode(), *ends) for text, kind, *ends in zip(*values, strict=True)
    ]
    return [rows[begin:end] for begin, end in itertools.pairwise(splits)]


@pytest.mark.parametrize(
    "name", ["names", *(pytest.param(name, marks=pytest.mark.long) for name in ("ends", "speech"))]
)
def test_a_saved_model_answers_as_the_predictor(name, model, predictor, tmp_path):
    export_task(
        str(tmp_path / "model"), model.model(name), model.config(name), model.base.vocabulary
    )
    served = tf.saved_model.load(str(tmp_path / "model"))
    serve, expected = served.signatures["serving_default"], predictor(TEXTS, adapter=name)
    for rows in (slice(None), slice(3, 4), slice(1, 3), slice(0, 0)):
        outputs = serve(text=tf.constant(TEXTS[rows], tf.string))
        ragged = served.answer(text=tf.constant(TEXTS[rows], tf.string))
        if name == "speech":
            tags = [[tag.decode() for tag in row] for row in ragged["tag"].to_list()]
            assert tags == [answer["tags"] for answer in expected[rows]]
            scores = [p for answer in expected[rows] for p in answer["probabilities"]]
            scores = np.array(scores, float)  # NaN stands for None.
            np.testing.assert_allclose(outputs["word_score"], scores, atol=1e-5)
            continue
        assert served_entities(outputs) == [entities(answer) for answer in expected[rows]]
        scores = [e["probability"] for answer in expected[rows] for e in answer["entities"]]
        np.testing.assert_allclose(outputs["entity_score"], scores, atol=1e-5)
        np.testing.assert_array_equal(ragged["text"].flat_values, outputs["entity_text"])
        np.testing.assert_array_equal(ragged["text"].row_splits, outputs["row_splits"])
    ids = abt.TextEncoder(model.base.vocabulary, 16).inputs(["the cat"])
    np.testing.assert_allclose(
        served.signatures["ids"](**ids)["logits"], model(ids, adapter=name), atol=1e-5
    )


@pytest.mark.long
def test_a_joined_model_holds_several_types(model, predictor, folders, tmp_path):
    names = join(list(map(str, folders.values())), model.base, str(tmp_path / "joined"))
    assert names == [*KINDS, "tasks"]
    served = tf.saved_model.load(str(tmp_path / "joined"))
    for name in ("names", "more", "ends"):
        outputs = served.signatures[name](text=tf.constant(TEXTS))
        expected = predictor(TEXTS, adapter=name)
        assert served_entities(outputs) == [entities(answer) for answer in expected]
        np.testing.assert_array_equal(
            served.answers[name](tf.constant(TEXTS))["type"].flat_values, outputs["entity_type"]
        )
    assert list(served.answers) == ["names", "more", "ends", "speech", "tasks"]


CLIENT = """
import json, sys
import tensorflow as tf, tensorflow_text
model = tf.saved_model.load(sys.argv[1])
answers = model.answer(tf.constant(json.loads(sys.argv[2])))
assert not [name for name in sys.modules if name.startswith(("adapter_bert_tf", "tf_keras"))]
print(json.dumps([[text.decode() for text in row] for row in answers["text"].to_list()]))
"""


@pytest.mark.long
def test_it_is_served_without_the_sources(model, predictor, tmp_path):
    export_task(
        str(tmp_path / "m"), model.model("names"), model.config("names"), model.base.vocabulary
    )
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, tmp_path / "m", json.dumps(TEXTS)],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if "KERAS" not in name},
    )
    expected = [[e["text"] for e in a["entities"]] for a in predictor(TEXTS, adapter="names")]
    assert json.loads(done.stdout.splitlines()[-1]) == expected


def test_the_model_computes_what_adapters_compute(model):
    inputs = abt.TextEncoder(model.base.vocabulary, 16).inputs(["the cat sat", "rain"])
    logits = model(inputs, adapter="names")
    assert logits.shape == (2, 5, 5)
    np.testing.assert_allclose(model.model("names")(inputs), logits, atol=1e-5)
    assert not any("pooler" in name for name in model._tasks["names"].values)


def test_rows_of_a_batch_have_taggers_of_their_own(model):
    inputs = abt.TextEncoder(model.base.vocabulary, 16).inputs(["the cat sat", "rain", "a dog"])
    names = ["names", "more", "names"]
    logits = model(inputs, adapter=names).numpy()
    assert logits.shape == (3, 5, 7)
    for row, name in enumerate(names):
        count = len(LABELS[name])
        alone = model(inputs, adapter=name).numpy()
        np.testing.assert_allclose(logits[row, :, :count], alone[row], atol=1e-5)
        assert (logits[row, :, count:] == -np.inf).all()
    with raises_code("conflict", "classes", "tags"):
        model(inputs, adapter=["names", "classes", "names"])


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"stride": -1}, "stride"),
        ({"max_seq_length": 4}, "max_seq_length"),
        ({"scheme": "IOB"}, "scheme"),
        ({"decoding": "beam"}, "decoding"),
    ],
)
def test_settings_that_cannot_be(wrong, name):
    values = dict(TAGS.inputs)
    TAGS.check_inputs(values)
    with raises_code("invalid", name):
        TAGS.check_inputs(values | wrong)


def test_a_head_is_summarized_by_its_types():
    assert TAGS.head_summary(LABELS["names"]) == "2 types of entities (LOC, PER)"
    assert TAGS.head_summary(LABELS["speech"]) == "3 tags (DET, NOUN, VERB)"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["O", "B-A", "I-A"], {"scheme": "IOB2"}),
        (["B-A", "I-A", "O", "B-B"], {"scheme": "IOB2"}),
        (["O", "B-A", "I-A", "I-B"], {"scheme": "IOB2", "decoding": "argmax"}),
        (["O", "I-A"], {"scheme": "IO", "decoding": "argmax"}),
        (["O", "B-A", "E-A", "S-A"], {"scheme": "BIOES", "decoding": "argmax"}),
        (["O", "B-A", "L-A", "U-A"], {"scheme": "BILOU", "decoding": "argmax"}),
        (["O", "E-A", "U-A"], {"scheme": "plain", "decoding": "argmax"}),
        (["LABEL_0", "LABEL_1"], {"scheme": "plain"}),
        (["O", "NOUN"], {"scheme": "plain"}),
    ],
)
def test_labels_from_elsewhere_decide_the_scheme(labels, expected):
    assert TAGS.inputs_for(labels) == expected


# The labels, and what the last of them, which is by far the likeliest, decodes to.
ADDED = {
    "parts of speech": (["NN", "VB"], ["VB", "VB"]),
    "BIOES": (["O", "B-X", "I-X", "E-X", "S-X"], ["S-X", "S-X"]),
    "IO": (["O", "I-X"], ["I-X", "I-X"]),
    "IOB2": (["O", "B-X", "I-X"], ["B-X", "I-X"]),
}


@pytest.mark.parametrize("case", ADDED)
def test_labels_decide_how_a_new_adapter_decodes(case, model):
    labels, expected = ADDED[case]
    made = abt.AdapterModel(model.base)
    size, tuning = abt.AdapterConfig(4), abt.Tuning(train_layer_norm=False)
    for name in ("one", "two"):
        made.add_adapter(name, labels, size, head="tags", tuning=tuning)
    made.add_fusion("fused", ["one", "two"], labels, head="tags", max_seq_length=16)
    made.add_adapter("given", labels, size, head="tags", scheme="plain")
    logits = np.full((2, len(labels)), -5, "f4")
    logits[:, -1] = 5
    output = WordLogits(None, ("a", "b"), np.zeros(0), np.zeros(0), logits)
    for name in ("one", "fused"):
        (answer,) = TAGS.answers([output], made.config(name))
        assert answer["tags"] == expected
        assert ("probabilities" in answer) == (case == "parts of speech")
    assert made.config("fused")["inputs"]["max_seq_length"] == 16
    assert made.config("given")["inputs"]["scheme"] == "plain"


def test_taggers_are_fused_averaged_and_trained(model, folders, tmp_path):
    tf_keras.utils.set_random_seed(0)
    labels, tuning = LABELS["names"], abt.Tuning(train_layer_norm=False)
    for name, own in (("first", labels), ("other", ["x", "y"])):
        model.add_adapter(name, own, abt.AdapterConfig(4), tuning=tuning, **KINDS["names"])
    fused = model.add_fusion("fused", ["first", "other"], labels, **KINDS["names"])
    inputs = abt.TextEncoder(model.base.vocabulary, 16).inputs(["the cat sat"])
    logits = model.with_members(inputs, "fused")
    assert {name: value.shape[2] for name, value in logits.items()} == {
        "fused": 5,
        "first": 5,
        "other": 2,
    }
    np.testing.assert_allclose(logits["first"], model(inputs, "first"), atol=1e-5)

    counted = np.zeros((1, 5, 2), "f4")
    counted[0, 2] = (3, 1.0)  # The second word is B-PER; the batch has no other counted word.
    fused.compile(tf_keras.optimizers.Adam(1e-2), fused.training_loss())
    losses = fused.fit(inputs, tf.constant(counted), epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.1 < losses[0]
    assert model(inputs, "fused")[0, 2].numpy().argmax() == 3

    model.add_adapter("again", labels, abt.AdapterConfig(4), **KINDS["names"])
    model.save_adapter("again", tmp_path / "again")
    saved = [abt.load_adapter(str(folder)) for folder in (folders["names"], tmp_path / "again")]
    mean = average(saved)
    assert mean.config["inputs"] == saved[0].config["inputs"] and mean.config["labels"] == labels
    expected = (saved[0].weights["head/bias"] + saved[1].weights["head/bias"]) / 2
    np.testing.assert_allclose(mean.weights["head/bias"], expected, rtol=1e-6)
    for name in ("first", "other", "fused", "again"):
        model.delete_adapter(name)


def test_the_card_names_the_pipeline_and_the_command(folders):
    card = (folders["names"] / "README.md").read_text()
    assert "pipeline_tag: token-classification" in card and "python run_tagger.py" in card
    assert 'predictor("Anna lives in Paris.")' in card
