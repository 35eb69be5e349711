"""The signature `tasks` of taggers, and of taggers and classifiers together."""

import numpy as np
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.heads.serving_class_rows import EMPTY
from adapter_bert_tf.heads.serving_tags import SPLITS
from adapter_bert_tf.serving.joined import join

pytestmark = pytest.mark.long

NAMES = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
SHORT = {"head": "tags", "max_seq_length": 16, "stride": 4}
TAGGERS = {  # Name: labels, inputs. Widths, schemes, decodings and windows differ.
    "names": (NAMES, SHORT),
    "more": ([*NAMES, "B-SUN", "I-SUN"], SHORT),
    "likely": (NAMES, SHORT | {"decoding": "argmax"}),
    "ends": (["O", "B-A", "I-A", "E-A", "S-A"], SHORT | {"scheme": "BIOES", "decoding": "viterbi"}),
    "speech": (["DET", "NOUN", "VERB"], SHORT | {"scheme": "plain"}),
    "wide": (["O", "B-PER", "I-PER"], {"head": "tags", "max_seq_length": 24, "stride": 2}),
}
CLASSES = {
    "moods": (["bad", "good"], {"max_seq_length": 16}),
    "stars": ((), {"max_seq_length": 16}),
}
TEXTS = [
    "the cat, sat on the mat in a red house! " * 3,
    "",
    "the cat",
    "rain \ufe0f sun",
    "We walk.",
]


@pytest.fixture(scope="module")
def model(tiny_base_folder):
    """Adapters with random weights, and two that one pass cannot compute with the others."""
    made = abt.AdapterModel(abt.load_base(tiny_base_folder))
    rng = np.random.default_rng(0)
    for number, (name, (labels, inputs)) in enumerate((TAGGERS | CLASSES).items()):
        size = 4 if number % 3 else 3
        made.add_adapter(name, labels, abt.AdapterConfig(size), **inputs)
        for key, variable in made._tasks[name].values.items():
            variable.assign_add(rng.normal(size=variable.shape) * (0.5 if "head" in key else 0.2))
    return made


@pytest.fixture(scope="module")
def serve(model, tmp_path_factory):
    """A function from names of tasks to their joined SavedModel."""
    folder = tmp_path_factory.mktemp("mixed")
    for name in model.list_adapters():
        model.save_adapter(name, folder / name)

    def load(*names):
        output = str(folder / "-".join(names))
        join([str(folder / name) for name in names], model.base, output)
        return tf.saved_model.load(output)

    load.folder = folder
    return load


@pytest.fixture(scope="module")
def taggers(serve):
    return serve(*TAGGERS)


def entities_of(answer, row):
    """(text, type, start, end, rounded score) of the entities of a row."""
    first, last = answer[SPLITS][row : row + 2].numpy()
    values = [answer[f"entity_{n}"][first:last].numpy() for n in ("text", "type", "start", "end")]
    scores = np.round(answer["entity_score"][first:last].numpy().astype(float), 3)
    return list(zip(*(value.tolist() for value in values), scores.tolist(), strict=True))


def alone(served, name, texts):
    """The same from the signature of one task; words of plain tags are entities."""
    answer = dict(served.signatures[name](text=tf.constant(texts)))
    for part in ("text", "start", "end", "score"):
        if (value := answer.get(f"word_{part}")) is not None:
            answer[f"entity_{part}"] = value
    if "word_tag" in answer:
        answer["entity_type"] = answer["word_tag"]
        answer["entity_score"] = tf.where(
            tf.math.is_nan(answer["word_score"]), 0.0, answer["word_score"]
        )
    return [entities_of(answer, row) for row in range(len(texts))]


def test_each_row_is_answered_as_by_the_signature_of_its_task(taggers):
    rows = [(text, name) for text in TEXTS for name in TAGGERS]
    order = np.random.default_rng(1).permutation(len(rows))
    rows = [rows[i] for i in order]
    texts, names = zip(*rows, strict=True)
    mixed = taggers.signatures["tasks"](task=tf.constant(names), text=tf.constant(texts))
    assert all(np.isfinite(value).all() for value in (mixed["entity_score"], mixed[SPLITS]))
    expected = {name: alone(taggers, name, TEXTS) for name in TAGGERS}
    assert sum(map(len, expected["names"])) > 3
    for row, (text, name) in enumerate(rows):
        assert entities_of(mixed, row) == expected[name][TEXTS.index(text)], (text, name)


def test_one_task_and_no_rows(taggers):
    same = taggers.signatures["tasks"](task=tf.constant(["more"] * 5), text=tf.constant(TEXTS))
    assert [entities_of(same, row) for row in range(5)] == alone(taggers, "more", TEXTS)
    nothing = tf.constant([], tf.string)
    answer = taggers.signatures["tasks"](task=nothing, text=nothing)
    assert answer[SPLITS].numpy().tolist() == [0] and not answer["entity_text"].shape[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown task"):
        taggers.signatures["tasks"](task=tf.constant(["x"]), text=tf.constant(["a"]))


def test_taggers_and_classifiers_share_the_signature(serve, taggers):
    """Rows of the other type are empty; taggers read `text_a`."""
    served = serve("moods", "names", "stars", "speech")
    tasks = ["names", "moods", "speech", "stars", "names"]
    fed = {"task": tasks, "text_a": TEXTS, "text_b": ["x"] * 5}
    answer = served.signatures["tasks"](**{name: tf.constant(v) for name, v in fed.items()})
    for row, (task, text) in enumerate(zip(tasks, TEXTS, strict=True)):
        own = entities_of(answer, row)
        label, score = answer["label"][row].numpy(), float(answer["score"][row])
        if task in TAGGERS:
            assert own == alone(taggers, task, [text])[0]
            assert (label, score) == (b"", 0) and not answer["probabilities"][row].numpy().any()
            assert (answer["logits"][row].numpy() == EMPTY["logits"]).all()
            continue
        assert not own
        single = served.signatures[task](text_a=tf.constant([text]))
        if task == "stars":
            assert label == b"" and score == pytest.approx(float(single["score"][0]), abs=1e-5)
        else:
            assert label == single["label"][0].numpy()
            np.testing.assert_allclose(
                answer["probabilities"][row], single["probabilities"][0], atol=1e-5
            )
    ragged = served.answers["tasks"](**{name: tf.constant(v) for name, v in fed.items()})
    assert ragged["text"].nrows() == 5 and ragged["label"].shape == [5]


def test_which_answers_are_ragged(serve, taggers):
    """With classifiers alone the signature is as before, and has no ragged answers."""
    served = serve("moods", "stars")
    outputs = served.signatures["tasks"].structured_outputs
    assert {*outputs} == {*EMPTY} and not served.answers
    assert {*taggers.answers} == {*TAGGERS, "tasks"}
