"""Classes and scores of texts in the graph, in batches whose rows are of different tasks."""

from collections.abc import Sequence

import tensorflow as tf

from adapter_bert_tf.data.tokenization import pad_inputs
from adapter_bert_tf.heads.serving_texts import Config, Pieces, RowAnswers, RunRows, Tensors

NO_LABEL = -1e9  # Logit of a label that a task does not have: after softmax exactly 0.
EMPTY = {"label": "", "classes": "", "logits": NO_LABEL, "probabilities": 0.0, "score": 0.0}


class ClassRows(RowAnswers):
    """Tasks of classes and of scores in one batch, each row with its own.

    Args:
      run: maps encoder inputs and each row's number in `configs` to logits `[batch, most labels]`.
      configs: of adapters; a task without labels has a score.
      pieces: of the base's vocabulary.
    """

    def __init__(self, run: RunRows, configs: Sequence[Config], pieces: Pieces) -> None:
        self.run, self.pieces = run, pieces
        labels = [list(config["labels"]) for config in configs]
        width = max(max(map(len, labels)), 1)
        self.classes = [names + [""] * (width - len(names)) for names in labels]
        self.is_score = [not names for names in labels]
        # How a row's texts become pieces: every length that occurs, with one text or two.
        inputs = [config["inputs"] for config in configs]
        ways = [(values["texts"], values["max_seq_length"]) for values in inputs]
        self.ways = sorted(set(ways))
        self.way_of = [self.ways.index(way) for way in ways]

    def __call__(self, which: tf.Tensor, *texts: tf.Tensor) -> Tensors:
        """`label` and `classes`, strings, `probabilities` and `logits`, `[batch, most labels]`.

        A task with fewer labels has "" there, 0 and `NO_LABEL`. `score` is the output of a task of
        scores, 0 for others, and `label` is "" for such a task. All numbers are finite, as JSON
        needs it.
        """
        logits = tf.maximum(self.run(self._inputs(which, texts), which), NO_LABEL)
        classes = tf.gather(tf.constant(self.classes), which)
        is_score = tf.gather(tf.constant(self.is_score), which)
        best = tf.argmax(logits, -1, tf.int32)
        return {
            "label": tf.gather(classes, best, batch_dims=1),
            "classes": classes,
            "logits": logits,
            "probabilities": tf.where(is_score[:, tf.newaxis], 0.0, tf.nn.softmax(logits)),
            "score": tf.where(is_score, logits[:, 0], 0.0),
        }

    def spread(self, answer: Tensors, rows: tf.Tensor, batch: tf.Tensor) -> Tensors:
        last = tf.size(rows)  # Of what rows of other tasks get.
        place = tf.tensor_scatter_nd_update(
            tf.fill([batch], last), rows[:, tf.newaxis], tf.range(last)
        )
        spread: Tensors = {}
        for name, value in answer.items():
            shape = [1, len(self.classes[0])][: value.shape.rank]
            empty = tf.fill(shape, tf.constant(EMPTY[name], value.dtype))
            spread[name] = tf.gather(tf.concat([value, empty], 0), place)
        return spread

    def _inputs(self, which: tf.Tensor, texts: Sequence[tf.Tensor]) -> Tensors:
        """Encoder inputs, each row made as its task makes them."""
        made = [self.pieces(length, *texts[:number]) for number, length in self.ways]
        batch = tf.shape(which)[0]
        rows = tf.gather(tf.constant(self.way_of), which) * batch + tf.range(batch)
        ids, types = (tf.gather(tf.concat(parts, 0), rows) for parts in zip(*made, strict=True))
        return pad_inputs(ids, types)
