"""Several heads on one encoder: each row has its own, and one task alone is a task by itself."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.heads.losses import mixed_loss
from adapter_bert_tf.heads.mixed.classifier import NOT_ITS_OWN, HeadOf, MixedClassifier
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.loop import TrainingSettings, compile_model, train
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.refusals import raises_code

ROWS = 4
ADAPTER = AdapterConfig(bottleneck_size=4)
A, B = HeadOf("a", 3), HeadOf("b", 1, is_score=True)
METHODS = {  # To the method of one task, and the parts of tasks of these names.
    "multitask_full": ("full", lambda names: None),
    "multitask_adapters": ("adapters", lambda names: ADAPTER),
    "per_task_adapters": ("adapters", lambda names: PerTaskConfig(ADAPTER, names)),
}


def labels_of(rows, columns, scores):
    return np.array([columns, scores], "f4").T[:rows]


def mixed(base, method, heads):
    """(model, trained variables) of several tasks, with no dropout."""
    tf_keras.utils.set_random_seed(0)
    parts = METHODS[method][1](tuple(head.task for head in heads))
    return _selected(MixedClassifier(base.build_encoder(parts), heads), Tuning(method))


def alone(base, method, head):
    """(model, trained variables) of one task by the method of one task."""
    tf_keras.utils.set_random_seed(0)
    tuning, parts = METHODS[method]
    encoder = base.build_encoder(ADAPTER if parts(("a",)) else None)
    kind = TASK_TYPES["regression" if head.is_score else "classification"]
    return _selected(kind.new_model(encoder, head.outputs), Tuning(tuning))


def _selected(model, tuning):
    for layer in model.submodules:
        if isinstance(layer, tf_keras.layers.Dropout):
            layer.rate = 0.0
    return model, select_trained(model, tuning)


def fitted(model, trained, elements, rate=1e-2):
    """The losses of one step for each (inputs, labels)."""
    losses = []
    model_loss = model.training_loss()

    def batches(start, share):
        data = tf.data.Dataset.from_generator(
            lambda: iter(elements[start:]),
            output_signature=tf.nest.map_structure(
                lambda x: tf.TensorSpec(x.shape, x.dtype), elements[0]
            ),
        )
        return data

    model.training_loss = lambda: (
        lambda labels, outputs: _noted(losses, model_loss(labels, outputs))
    )
    train(model, trained, batches, TrainingSettings(len(elements), ROWS, rate))
    return losses


def _noted(losses, loss):
    tf.py_function(lambda x: losses.append(float(tf.reduce_mean(x))), [loss], [])
    return loss


@pytest.fixture(scope="module")
def base(tiny_base_folder):
    return load_base(tiny_base_folder)


def test_the_loss_by_hand():
    outputs = np.array(
        [[1.0, 2.0, 0.5, NOT_ITS_OWN], [NOT_ITS_OWN, NOT_ITS_OWN, NOT_ITS_OWN, 3.0]], "f4"
    )
    loss = mixed_loss([False, False, False, True])
    found = loss(tf.constant([[1.0, 0.0], [3.0, 2.5]]), tf.constant(outputs))
    classes = np.exp(outputs[0, :3])
    np.testing.assert_allclose(found, [-np.log(classes[1] / classes.sum()), 0.25], rtol=1e-6)


def test_each_row_has_the_outputs_of_its_own_head(base):
    model, _ = mixed(base, "multitask_adapters", [A, B])
    inputs = support.batch(rows=ROWS)
    found = model(inputs | {"task_ids": np.array([0, 1, 1, 0], "i4")}).numpy()
    pooled = model.encoder(inputs, output_range=1)["pooled_output"].numpy()
    for head, layer, rows in ((A, model.heads[0], [0, 3]), (B, model.heads[1], [1, 2])):
        expected = pooled[rows] @ layer.kernel.numpy() + layer.bias.numpy()
        np.testing.assert_allclose(found[rows][:, model.columns(head.task)], expected, atol=1e-6)
    assert (found[[1, 2], :3] == NOT_ITS_OWN).all() and (found[[0, 3], 3] == NOT_ITS_OWN).all()


def test_each_row_has_the_adapter_of_its_task(base):
    """Against a model of each task by itself, with the same weights."""
    model, _ = mixed(base, "per_task_adapters", [A, B])
    rng = np.random.default_rng(0)
    named = model.named_variables()
    for name, variable in named.items():
        if name.startswith("tasks/"):
            variable.assign(rng.normal(size=variable.shape) * 0.3)
    inputs, ids = support.batch(rows=ROWS), np.array([0, 1, 1, 0], "i4")
    found = model(inputs | {"task_ids": ids}).numpy()
    for number, head in enumerate((A, B)):
        one, _ = alone(base, "per_task_adapters", head)
        for name, variable in one.named_variables().items():
            if not name.startswith("bert/"):
                variable.assign(named[f"tasks/{head.task}/{name}"])
        expected = one(inputs).numpy()[ids == number]
        np.testing.assert_allclose(
            found[ids == number][:, model.columns(head.task)], expected, atol=1e-5
        )


@pytest.mark.parametrize("head", [A, HeadOf("a", 1, is_score=True)], ids=["classes", "score"])
@pytest.mark.parametrize(
    "method", support.seldom(METHODS, ("multitask_adapters", "per_task_adapters"))
)
@pytest.mark.long
def test_one_task_is_trained_as_by_itself(method, head, base):
    rng = np.random.default_rng(0)
    single, several = [], []
    for step in range(20):
        inputs = support.batch(seed=step, rows=ROWS)
        if head.is_score:
            right = rng.normal(size=ROWS).astype("f4")
            labels = labels_of(ROWS, np.zeros(ROWS), right)
        else:
            right = rng.integers(0, 3, ROWS).astype("i4")
            labels = labels_of(ROWS, right, np.zeros(ROWS))
        single.append((inputs, right))
        several.append((inputs | {"task_ids": np.zeros(ROWS, "i4")}, labels))
    one, of_one = alone(base, method, head)
    many, of_many = mixed(base, method, [head])
    for name, variable in of_one.items():  # Drawn in another order.
        of_many.get(name, of_many.get(f"tasks/a/{name}")).assign(variable)
    losses = fitted(one, of_one, single), fitted(many, of_many, several)
    assert len(losses[0]) == 20 and losses[0][-1] != losses[0][0]
    np.testing.assert_allclose(losses[1], losses[0], atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_of_a_task_without_a_row_rests(method, base):
    """Also where it has moved before, and its moments would go on; what is shared moves."""
    model, trained = mixed(base, method, [A, B])
    inputs = support.batch(rows=ROWS)
    both = (
        inputs | {"task_ids": np.array([0, 1, 1, 0], "i4")},
        labels_of(4, [0, 3, 3, 2], [1] * 4),
    )
    only_a = (inputs | {"task_ids": np.zeros(ROWS, "i4")}, labels_of(4, [0, 1, 1, 2], [1] * 4))
    states = [{name: variable.numpy() for name, variable in trained.items()}]
    noted = tf_keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_: states.append(
            {name: variable.numpy() for name, variable in trained.items()}
        )
    )
    compile_model(model, TrainingSettings(10, ROWS, 1e-2))
    data = [tf.data.Dataset.from_tensors(batch) for batch in (only_a, both, only_a, only_a)]
    for one in data:
        model.fit(one, verbose=0, callbacks=[noted])

    def moves(name):
        return [bool((new[name] != old[name]).any()) for old, new in itertools.pairwise(states)]

    for name in trained:
        if name.startswith("tasks/b/"):
            assert moves(name)[0] is moves(name)[2] is moves(name)[3] is False, name
    assert moves("tasks/b/head/kernel") == [False, True, False, False]
    assert moves("tasks/a/head/kernel") == [True] * 4
    assert moves("bert/encoder/layer_1/output/LayerNorm/gamma") == [True] * 4


def test_gradients_of_what_each_task_has_are_dense(base):
    model, trained = mixed(base, "per_task_adapters", [A, B])
    inputs = support.batch(rows=ROWS) | {"task_ids": np.array([0, 1, 1, 0], "i4")}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model.training_loss()(tf.constant([[0.0, 1.0]] * 4), model(inputs)))
    gradients = tape.gradient(loss, list(trained.values()))
    assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)


def test_the_config_makes_the_same_model(base):
    model, _ = mixed(base, "per_task_adapters", [A, B])
    again = MixedClassifier.from_config(model.get_config())
    shapes = {name: v.shape for name, v in model.named_variables().items()}
    assert {name: v.shape for name, v in again.named_variables().items()} == shapes
    assert again.head_of == model.head_of


@pytest.mark.parametrize("names", [("a", "a"), ("",), ("a/b",), ("../x",), ("ä",), ("x" * 65,), ()])
def test_names_that_are_no_names_of_tasks_are_refused(names, base):
    with raises_code("invalid"):
        PerTaskConfig(ADAPTER, names)
