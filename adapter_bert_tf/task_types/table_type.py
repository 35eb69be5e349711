"""The interface of types whose examples are rows of a table: texts, and a cell with the label."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.labels import LabelCells
from adapter_bert_tf.errors import Conflict, InputError
from adapter_bert_tf.heads import serving_texts
from adapter_bert_tf.heads.logits import pooled_logits
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.serving_texts import (
    Config,
    Pieces,
    RowAnswers,
    Run,
    RunRows,
    Tensors,
)
from adapter_bert_tf.heads.specs import HeadOf
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types.batched_inference import RunBatch, class_logits
from adapter_bert_tf.task_types.metrics import Metric
from adapter_bert_tf.task_types.task_type import TaskType
from adapter_bert_tf.tasks.task import Task

if TYPE_CHECKING:
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.heads.task_model import EncoderModel, TaskModel


@dataclasses.dataclass(frozen=True)
class Scale:
    """Mean and deviation of the training scores; a model learns (score - mean) / deviation."""

    mean: float
    deviation: float

    def standardize(self, scores: np.ndarray) -> np.ndarray:
        """Scores of mean 0 and deviation 1, float32 `[examples]`."""
        return (scores - self.mean) / self.deviation


class TableType(TaskType, LabelCells):
    """A type of tasks of one or two texts. Its `LabelCells` determine how label cells are read.

    Encoded labels and predictions are arrays with a row for each example.
    """

    model_options: ClassVar[Mapping[str, Any]] = {}  # Arguments of the `Classifier` to train.
    inputs: ClassVar[Mapping[str, Any]] = {"texts": 1, "max_seq_length": 128}
    logits = staticmethod(pooled_logits)
    command = "run_classifier.py --task_name={task}"
    metrics: ClassVar[Mapping[str, Metric]]  # Functions of decided labels and predictions.
    own_metrics: ClassVar[tuple[str, ...]]  # Of a user's table, the first to compare by.
    raw_outputs: ClassVar[str] = "probabilities"  # Noun for the content of `test_results.tsv`.

    def new_model(self, encoder: Any, outputs: int) -> TaskModel:
        from adapter_bert_tf.heads.classifier import Classifier

        dropout = encoder.config["output_dropout"]
        return Classifier(encoder, outputs, dropout=dropout, **self.model_options)

    def new_mixed_model(self, encoder: Any, heads: Sequence[HeadOf]) -> EncoderModel:
        from adapter_bert_tf.heads.mixed.classifier import MixedClassifier

        return MixedClassifier(encoder, heads, dropout=encoder.config["output_dropout"])

    def mixed_labels(self, labels: Any, first: int) -> tf.Tensor:
        """Labels as in `losses.mixed_loss`, float32 `[examples, 2]`."""
        values = tf.cast(labels, tf.float32)
        zeros = tf.zeros_like(values)
        return tf.stack([zeros + first, values] if self.is_score else [values + first, zeros], -1)

    def check_inputs(self, values: Mapping[str, Any]) -> None:
        if values["texts"] not in (1, 2) or values["max_seq_length"] < 5:
            raise InputError(
                f"inputs need 1 or 2 texts and room for them. Received: {preview(values)}"
            )

    def num_texts(self, inputs: Mapping[str, Any]) -> int:
        return inputs["texts"]

    def reads(self, inputs: Mapping[str, Any]) -> str:
        return {1: "one text", 2: "two texts, a pair"}[self.num_texts(inputs)]

    # Labels of a table.

    @abc.abstractmethod
    def encode(self, task: Task, examples: Examples) -> np.ndarray:
        """Labels as arrays, `[examples]` or `[examples, labels]`; a test row's may be None.

        Raises `InputError`, with its file and line, for a cell that is not a label of the task.
        """

    @abc.abstractmethod
    def is_known(self, encoded: np.ndarray) -> np.ndarray:
        """bool `[examples]`: whether the label of each example is known."""

    @abc.abstractmethod
    def check_training(self, task: Task, encoded: np.ndarray) -> None:
        """Checks that there is something to learn. Raises `InputError`."""

    def check_inferred(self, labels: Sequence[str]) -> None:
        """Warns of labels, inferred from the training data, that look like another type's."""

    # Training.

    def scale(self, encoded: np.ndarray) -> Scale | None:
        """`Scale` of training scores that are standardized; None: labels are learned as given."""
        return None

    def weighted_loss(
        self,
        weights: str | None,
        smoothing: float,
        labels: Sequence[str],
        encoded: np.ndarray,
        counts: np.ndarray | None = None,
    ) -> Loss | None:
        """The loss with `--class_weights` and `--label_smoothing`; None: the model's own.

        `encoded` are the labels of the training examples; with `counts` of so many examples each.
        """
        if weights or smoothing:
            raise Conflict(
                "--class_weights and --label_smoothing need a single task of classes, without "
                "scores, label sets or questions. Leave them out."
            )
        return None

    # Evaluation.

    @abc.abstractmethod
    def predictions(self, logits: np.ndarray, scale: Scale | None = None) -> np.ndarray:
        """Predictions, float32, from `[examples, outputs]`; `scale` is that of training scores."""

    @abc.abstractmethod
    def decide(self, predicted: np.ndarray) -> np.ndarray:
        """The label or score that each prediction stands for, as metrics take them."""

    @abc.abstractmethod
    def loss(self, encoded: np.ndarray, predicted: np.ndarray) -> float:
        """Mean loss of predictions."""

    def fitting_metrics(self, labels: Sequence[str]) -> list[str]:
        """Names of the metrics that a task with these labels may be judged by."""
        return list(self.metrics)

    def metric(self, name: str, encoded: np.ndarray, predicted: np.ndarray) -> float:
        """One metric of predictions whose labels are known."""
        return float(self.metrics[name](encoded, self.decide(predicted)))

    def evaluate(
        self, names: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> dict[str, float]:
        """Dict from name to metric, and `loss`, for known labels and `predictions`."""
        scores = {name: self.metric(name, encoded, predicted) for name in names}
        return scores | {"loss": self.loss(encoded, predicted)}

    def is_constant(self, predicted: np.ndarray) -> bool:
        """Whether all of several predictions are the same."""
        decided = self.decide(predicted)
        return len(decided) > 1 and bool((decided == decided[0]).all())

    def warn_of_few(self, what: str, encoded: np.ndarray) -> None:
        """Warns of labels that are too few for the metrics."""

    def right(self, encoded: np.ndarray, predicted: np.ndarray) -> np.ndarray | None:
        """bool `[examples]`: whether each prediction is right; None where none is exactly."""
        return None

    # Result files.

    @abc.abstractmethod
    def details(
        self, labels: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> dict[str, Any]:
        """Facts for `eval_details.json`: a dict with `kind` and `shown`, dicts with a `row`."""

    def class_table(
        self, labels: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> tuple[str, list[list[str]]] | None:
        """(title with `{}` for the split, rows with a header) of `eval_classes.tsv`, if any."""
        return None

    @abc.abstractmethod
    def shown(self, labels: Sequence[str], predicted: np.ndarray) -> list[str]:
        """Predictions as short texts."""

    def written(self, task: Task, predicted: np.ndarray) -> list[str]:
        """Predictions as texts, for a submission file."""
        return self.shown(task.labels or (), predicted)

    def certainty(self, row: np.ndarray) -> str:
        """How sure a prediction is, to be printed after it; or ""."""
        return ""

    # Answers and serving.

    def outputs(
        self,
        run: RunBatch,
        texts: Sequence[Sequence[str]],
        encoder: TextEncoder,
        inputs: Mapping[str, Any],
        batch_size: int,
    ) -> tuple[list[Any], np.ndarray]:
        return class_logits(run, texts, encoder, batch_size)

    @abc.abstractmethod
    def served(self, logits: tf.Tensor, config: Config) -> Tensors:
        """What the signatures return, from logits `[batch, outputs]`."""

    def serve_texts(self, run: Run, config: Config, pieces: Pieces) -> Any:
        def answer(*texts: tf.Tensor) -> Tensors:
            from adapter_bert_tf.data.tokenization import pad_inputs, require_equal_lengths

            ids, types = pieces(config["inputs"]["max_seq_length"], *require_equal_lengths(texts))
            return self.served(run(pad_inputs(ids, types)), config)

        names = self.text_names[: self.num_texts(config["inputs"])]
        return serving_texts.text_signature(names, answer)

    def serve_rows(self, run: RunRows, configs: Sequence[Config], pieces: Pieces) -> RowAnswers:
        from adapter_bert_tf.heads.serving_class_rows import ClassRows

        return ClassRows(run, configs, pieces)

    def serve_ids(self, run: Run, config: Config) -> Any:
        return serving_texts.id_signature(lambda inputs: self.served(run(inputs), config))


def choose_metrics(metric: str | None, task: Task, kind: TableType) -> tuple[str, ...]:
    """Names of the metrics of a task, the one to compare by first. Raises `InputError`."""
    fitting = kind.fitting_metrics(task.labels or ())
    if metric not in (None, *fitting):
        raise InputError(
            f"metric is one of {fitting}, for {kind.predicts}. Received: {preview(metric)}",
            "metric",
        )
    first = (metric,) if metric else ()
    return (*first, *(name for name in task.metrics or kind.own_metrics if name != metric))
