"""Tiny models with batches to train on, and a development set to evaluate on.

python tests/training/tiny.py OUTPUT_DIR [DISTRIBUTION]: trains, and prints what came out.
"""

import json
import sys

import numpy as np
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.heads.losses import sparse_cross_entropy
from adapter_bert_tf.training.device.strategy import make_strategy
from adapter_bert_tf.training.evaluation import Evaluation
from adapter_bert_tf.training.inference import predict
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support

ROWS = 4


class Toy(tf_keras.Model):
    """A classifier of vectors, for tests of the loop itself: traced in no time."""

    def __init__(self):
        super().__init__()
        self.dense = tf_keras.layers.Dense(4, "tanh")
        self.dropout = tf_keras.layers.Dropout(0.5)
        self.head = tf_keras.layers.Dense(2, dtype=tf.float32)

    def call(self, inputs, training=None):
        """Logits `[rows, 2]` of vectors `[rows, 3]`."""
        return self.head(self.dropout(self.dense(inputs), training=training))

    def training_loss(self):
        """The loss to train with."""
        return sparse_cross_entropy


def setup(folder):
    """(model, trained variables) on the tiny base, the same each time."""
    tf_keras.utils.set_random_seed(3)
    model = Classifier(load_base(folder).build_encoder(AdapterConfig(bottleneck_size=4)), 2)
    return model, select_trained(model, Tuning())


def setup_toy():
    """(`Toy`, trained variables), the same each time."""
    tf_keras.utils.set_random_seed(3)
    model = Toy()
    model(vectors(0)[0])
    names = ("dense/kernel", "dense/bias", "head/kernel", "head/bias")
    return model, dict(zip(names, model.variables, strict=True))


def vectors(seed):
    """(inputs, labels) for `Toy`."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(ROWS, 3)).astype("f4")
    return inputs, (inputs.sum(-1) > 0).astype("i4")


def without_dropout(model):
    """`model`, whose draws no longer depend on the strategy."""
    for layer in model.submodules:
        if isinstance(layer, tf_keras.layers.Dropout):
            layer.rate = 0.0
    return model


def dataset(elements, share):
    """`tf.data.Dataset` of a host's parts of global batches, each a structure of arrays."""
    mine = [
        tf.nest.map_structure(lambda x, i=i: np.split(x, share.replicas)[i], element)
        for element in elements
        for i in range(share.local)
    ]
    return tf.data.Dataset.from_generator(
        lambda: iter(mine),
        output_signature=tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), mine[0]),
    )


def examples(steps):
    """The (inputs, labels) of each step on the tiny base."""
    return [(support.batch(seed=i, rows=ROWS), np.array([i % 2, 1, 0, 1])) for i in range(steps)]


def batches(steps):
    """Function of a step and a `Share`, as `train` wants it; the batches are divided in two."""
    return lambda start, share: dataset(examples(steps)[start:], share)


def toy_batches(steps):
    """The same for `Toy`."""
    return lambda start, share: dataset([vectors(i) for i in range(steps)][start:], share)


def training_loss(model, steps):
    """The mean cross-entropy of the examples of so many steps, without dropout."""
    return float(np.mean([cross_entropy(model(x), y) for x, y in examples(steps)]))


def cross_entropy(logits, labels):
    """The mean over the rows of logits `[rows, 2]`."""
    return -np.log(tf.nn.softmax(logits).numpy()[np.arange(len(labels)), labels]).mean()


def called(model, inputs):
    """Logits of batches without a graph, which is quickest for a few."""
    return model(np.concatenate(inputs), training=False).numpy()


def predicted(model, inputs):
    """The same as a task's evaluation finds them, on any number of devices."""
    return np.concatenate(list(predict(model, lambda share: dataset(inputs, share))))


def results(model, logits_of=called):
    """Accuracy and loss of a `Toy` on a development set."""
    inputs, labels = zip(*(vectors(100 + i) for i in range(2)), strict=True)
    logits, labels = logits_of(model, inputs), np.concatenate(labels)
    return {
        "accuracy": float((logits.argmax(-1) == labels).mean()),
        "loss": float(cross_entropy(logits, labels)),
    }


def values(trained):
    """The variables' values."""
    return {name: variable.numpy() for name, variable in trained.items()}


def scripted(model, scores, every=2, logits_of=called, **options):
    """An `Evaluation` with the real results and, as the number to choose by, the next of `scores`.

    Which one is next, the optimizer's count of steps says: also in a run that is taken up again.
    """

    def evaluate():
        step = int(model.optimizer.iterations.numpy())
        return results(model, logits_of) | {"score": scores[-(-step // (every or step)) - 1]}

    return Evaluation(every, evaluate, lambda found: found["score"], **options)


def main(output_dir, distribution="mirrored"):
    """Trains a `Toy` on all devices, with the second of four evaluations the best."""
    strategy = make_strategy(distribution)
    with strategy.scope():
        model, trained = setup_toy()
    without_dropout(model)
    settings = TrainingSettings(8, ROWS, 1e-1, save_every=3, output_dir=output_dir)
    scores = (0.1, 0.5, 0.3, 0.5)
    evaluation = scripted(model, scores, logits_of=predicted, keep="best")
    progress = train(model, trained, toy_batches(8), settings, evaluation)
    found = {
        "replicas": strategy.num_replicas_in_sync,
        "start": progress.start,
        "kept_step": progress.weights_step,
        "results": results(model, predicted),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
