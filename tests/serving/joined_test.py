"""One SavedModel for many tasks."""

import os
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.serve import main
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.heads.serving_class_rows import NO_LABEL
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.training.tuning import Tuning

pytestmark = pytest.mark.long

SMALL = AdapterConfig(4, init_scale=0.3)
TASKS = {  # name: (labels, config, tuning, inputs)
    "two": (("a", "b"), SMALL, Tuning(), {"max_seq_length": 16}),
    "pairs": (("x", "y", "z"), SMALL, Tuning(), {"texts": 2, "max_seq_length": 8}),
    "score": ((), SMALL, Tuning(train_layer_norm=False), {"max_seq_length": 16}),
    "top": (("a", "b"), PRESETS["pfeiffer"], Tuning(train_pooler=True), {"max_seq_length": 16}),
    "norms-1": (("x", "y"), None, Tuning("layer_norm"), {"max_seq_length": 16}),
}
A = ["the cat sat on the house and ran", "rain", "", "red house", "it is not bad", "why"]
B = ["a dog ran and ran", "sun", "who", "why?", "they walk", ""]


def _model(folder):
    model = AdapterModel(load_base(folder))
    for seed, (name, (labels, config, tuning, inputs)) in enumerate(TASKS.items()):
        trained = model.add_adapter(name, labels, config, tuning=tuning, **inputs)
        rng = np.random.default_rng(seed)
        for variable in trained.trainable_variables:
            variable.assign_add(rng.normal(size=variable.shape) * 0.3)
    return model


@pytest.fixture(scope="module")
def joined_model(tiny_base_folder, tmp_path_factory):
    """(AdapterModel, SavedModel of its tasks and one of spans)."""
    folder = tmp_path_factory.mktemp("joined")
    model = _model(tiny_base_folder)
    model.add_adapter(
        "questions", config=SMALL, head="span", max_seq_length=24, max_query_length=8, doc_stride=8
    )
    for name in model.list_adapters():
        model.save_adapter(name, str(folder / name))
    folders = [str(folder / name) for name in model.list_adapters()]
    twin = shutil.copytree(folder / "two", folder / "rate=1e-3" / "two")
    assert (
        main(
            [
                *folders,
                f"twin={twin}",
                f"--output={folder / 'model'}",
                f"--base_model={tiny_base_folder}",
            ]
        )
        == 0
    )
    return model, tf.saved_model.load(str(folder / "model"))


def _expected(model, name, rows):
    inputs = model.config(name)["inputs"]
    encoder = TextEncoder(model.base.vocabulary, inputs["max_seq_length"])
    texts = ([A[i] for i in rows], [B[i] for i in rows])[: inputs["texts"]]
    return model(encoder.inputs(*texts), adapter=name).numpy()


@pytest.mark.parametrize("name", TASKS)
def test_a_signature_for_each_task(name, joined_model):
    model, served = joined_model
    texts = {"text_a": tf.constant(A)}
    if model.config(name)["inputs"]["texts"] == 2:
        texts["text_b"] = tf.constant(B)
    output = served.signatures[re.sub("-", "_", name)](**texts)
    expected = _expected(model, name, range(6))
    if name == "score":
        np.testing.assert_allclose(output["score"], expected[:, 0], atol=1e-5)
    else:
        np.testing.assert_allclose(output["logits"], expected, atol=1e-5)


def test_one_adapter_under_two_names(joined_model):
    model, served = joined_model
    names = ["two", "twin"]
    output = served.signatures["tasks"](
        task=tf.constant(names), text_a=tf.constant(A[:2]), text_b=tf.constant(["", ""])
    )
    np.testing.assert_allclose(
        output["logits"][:, :2], _expected(model, "two", range(2)), atol=1e-5
    )


def test_a_task_for_each_row(joined_model):
    model, served = joined_model
    names = ["pairs", "score", "two", "top", "norms-1", "pairs"]
    output = served.signatures["tasks"](
        task=tf.constant(names), text_a=tf.constant(A), text_b=tf.constant(B)
    )
    for row, name in enumerate(names):
        expected, labels = _expected(model, name, [row])[0], TASKS[name][0]
        np.testing.assert_allclose(output["logits"][row, : len(expected)], expected, atol=1e-5)
        assert (output["logits"][row, len(expected) :].numpy() == NO_LABEL).all()
        assert not output["probabilities"][row, len(expected) :].numpy().any()
        if labels:
            assert output["label"][row].numpy().decode() == labels[expected.argmax()]
            assert float(tf.reduce_sum(output["probabilities"][row])) == pytest.approx(1, abs=1e-5)
            assert output["score"][row] == 0
        else:
            assert float(output["score"][row]) == pytest.approx(expected[0], abs=1e-5)
            assert output["label"][row] == b""
    for name in ("logits", "probabilities", "score"):  # JSON knows no other numbers.
        assert np.isfinite(output[name]).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown task"):
        served.signatures["tasks"](
            task=tf.constant(["cola"]), text_a=tf.constant(["a"]), text_b=tf.constant([""])
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="same number of rows"):
        served.signatures["tasks"](
            task=tf.constant(["pairs"] * 2), text_a=tf.constant(["a"]), text_b=tf.constant(["", ""])
        )
    none = tf.constant([], tf.string)
    output = served.signatures["tasks"](task=none, text_a=none, text_b=none)
    assert output["logits"].shape == (0, 3)


def test_questions_too(joined_model):
    _, served = joined_model
    output = served.signatures["questions"](
        question=tf.constant(["who sat"]), context=tf.constant(["the cat sat on the mat " * 9])
    )
    assert set(output) == {"answer", "score", "start", "end"}


def test_what_cannot_be_joined(tiny_base_folder, tmp_path, capsys):
    model = AdapterModel(load_base(tiny_base_folder))
    model.add_adapter("a", ["0", "1"], SMALL)
    model.add_adapter("full", ["0", "1"], None, tuning=Tuning("full"))
    model.add_adapter("tasks", ["0", "1"], SMALL)
    for name in model.list_adapters():
        model.save_adapter(name, str(tmp_path / name))
    base, output = f"--base_model={tiny_base_folder}", f"--output={tmp_path / 'model'}"
    for names, message in (
        (["a", "a"], "NAME={folder}/a gives it another"),
        (["full"], "--task_name=full --adapter_dir={folder}/full --do_export"),
        (["tasks"], "its own name"),
        (["b"], "No adapter in"),
    ):
        assert main([*(str(tmp_path / name) for name in names), base, output]) == 1
        assert message.format(folder=tmp_path) in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_the_base_is_stored_once(tiny_base_folder, tmp_path):
    """What each further task adds to the variables is its own weights, to the byte."""
    model, sizes = AdapterModel(load_base(tiny_base_folder)), []
    for number in range(6):
        model.add_adapter(f"t{number}", ["0", "1"], SMALL)
        model.save_adapter(f"t{number}", str(tmp_path / f"t{number}"))
        folders = [str(tmp_path / f"t{i}") for i in range(number + 1)]
        if number in (0, 5):
            main([*folders, f"--output={tmp_path / 'm'}", f"--base_model={tiny_base_folder}"])
            sizes.append(
                os.path.getsize(tmp_path / "m" / "variables" / "variables.data-00000-of-00001")
            )
    weights = 4 * sum(v.shape.num_elements() for v in model.model("t0").trainable_variables)
    assert sizes[1] - sizes[0] == pytest.approx(5 * weights, abs=200)
