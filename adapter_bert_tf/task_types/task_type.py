"""The interface of a task type: all that differs between classes, scores, label sets and spans."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from adapter_bert_tf.adapters.modules import module_from_values
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.serving_texts import Config, Pieces, RowAnswers, Run, RunRows
from adapter_bert_tf.heads.specs import HeadOf, head_specs
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.report_blocks import Block
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types.batched_inference import RunBatch
from adapter_bert_tf.tasks.task import BETWEEN_LABELS

if TYPE_CHECKING:
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.heads.task_model import EncoderModel, TaskModel

Details: TypeAlias = Mapping[str, Any]  # Of one evaluated set; see `eval_details.json`.
ReportPart: TypeAlias = Callable[[Details, str], Sequence[Block]]
Answer: TypeAlias = dict[str, Any]


class TaskType(abc.ABC):
    """All that differs between types of tasks. Each type is one row of `TASK_TYPES`."""

    name: ClassVar[str]  # Key in the registry; `Task.task_type` and the command name it.
    file_head: ClassVar[str]  # The fields `head` and `regression` of `adapter_config.json`.
    file_regression: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Any]] = {}  # Settings of the command that choose this type.
    predicts: ClassVar[str]  # Noun for the predictions, for messages.
    is_task: ClassVar[bool] = True  # Or a preparation for tasks, from text without labels.
    labels: ClassVar[tuple[str, ...] | None] = None  # Of all tasks; None: each has its own.
    text_names: ClassVar[tuple[str, ...]] = ("text_a", "text_b")  # In a table and a signature.
    example_texts: ClassVar[tuple[str, ...]] = ("A text.", "Another text.")  # For the card.
    inputs: ClassVar[Mapping[str, Any]]  # The settings of a task's inputs, and their defaults.
    longest: ClassVar[str] = "max_seq_length"  # The one of these that cuts texts.
    # Function of (encoder, inputs, module, kernel, bias, stacked): the model's computation, with
    # given weights of the head `[hidden, outputs]`, `[outputs]`.
    logits: ClassVar[Callable[..., tf.Tensor]]
    command: ClassVar[str]  # Trains and evaluates it, with `{task}`.
    evaluation_flags: ClassVar[str] = "--do_eval --do_predict"  # Of `command`.
    unused: ClassVar[tuple[str, ...]] = ()  # Groups of variables that no output depends on.
    # Whether its tasks can be trained together, with those of types with the same `logits`.
    mixes: ClassVar[bool] = False
    pipeline: ClassVar[str] = "text-classification"  # Its name on the Hugging Face Hub.
    details_kind: ClassVar[str]  # The field `kind` of `eval_details.json`.
    example: ClassVar[str] = "example"  # What its evaluated sets count.
    loss_unit: ClassVar[str] = "cross-entropy, nats"  # For a chart's axis.
    dev_loss_unit: ClassVar[str | None] = None  # Of evaluations, if it is another.
    report_parts: ClassVar[tuple[ReportPart, ...]] = ()  # Functions of (details, "n = ...").

    def __repr__(self) -> str:
        return f"<task type {self.name}>"

    # The head.

    @property
    def is_score(self) -> bool:
        """Whether the output is a score, one number, instead of logits."""
        return self.labels == ()

    @abc.abstractmethod
    def new_model(self, encoder: Any, outputs: int) -> TaskModel:
        """The model to train, with the type's loss, around an encoder."""

    def new_mixed_model(self, encoder: Any, heads: Sequence[HeadOf]) -> EncoderModel:
        """The model to train for several tasks, with a loss for batches of mixed rows."""
        raise NotImplementedError

    def mixed_labels(self, labels: Any, first: int) -> Any:
        """Labels of training examples for the loss of `new_mixed_model`.

        `first` is the number of the task's first output among those of all tasks.
        """
        raise NotImplementedError

    def num_outputs(self, labels: Sequence[str]) -> int:
        """Width of the head: one output for each label."""
        return len(labels)

    def head_summary(self, labels: Sequence[str]) -> str:
        """What a head predicts, in few words."""
        return self.name

    def specs(self, sizes: Sizes, labels: Sequence[str]) -> dict[str, VariableSpec]:
        """Dict from common name to `VariableSpec` of the head, on a base of these sizes."""
        return head_specs(sizes["hidden_size"], self.num_outputs(labels))

    def logits_of(
        self,
        encoder: Any,
        inputs: Mapping[str, tf.Tensor],
        config: Any,
        values: Mapping[str, Tensor],
        stacked: str | None = None,
    ) -> tf.Tensor:
        """Logits as the model of `new_model` computes them, with the weights of the call.

        `inputs` are int32 `[batch, seq]`; `config` is a `ModuleConfig`, or None for the bare base.
        `values` and `stacked` are as for `module_from_values`, with `head/kernel [hidden, outputs]`
        and `head/bias [outputs]`. Returns float32 `[batch, outputs]`, or `[batch, 2, seq]` for
        spans.
        """
        module = module_from_values(config, values, stacked)
        kernel, bias = values["head/kernel"], values["head/bias"]
        return self.logits(encoder, inputs, module, kernel, bias, stacked)

    def own_logits(self, logits: tf.Tensor, outputs: int) -> tf.Tensor:
        """Logits `[batch, outputs]` of a task among those of wider heads in the same batch."""
        return logits[:, :outputs]

    def without_padding(self, logits: tf.Tensor, length: int) -> tf.Tensor:
        """Logits of inputs that were padded to more than `length` positions."""
        return logits

    def numeric_outputs(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """What a model without texts returns, from the logits of `logits_of`."""
        return {"logits": logits}

    # The adapter directory.

    def file_fields(self) -> dict[str, Any]:
        """Fields of `adapter_config.json` that name the type."""
        return {"head": self.file_head, "regression": self.file_regression}

    def check_labels(self, labels: Sequence[str]) -> None:
        """Checks that labels exist where the type needs them. Raises `InputError`."""
        if bool(labels) == (self.labels == ()):
            raise InputError(
                f"a classifier has labels, a regression has none. Received: {preview(labels)}"
            )

    def inputs_for(self, labels: Sequence[str]) -> dict[str, Any]:
        """Values for `inputs` that labels decide, unless they are given."""
        return {}

    @abc.abstractmethod
    def check_inputs(self, values: Mapping[str, Any]) -> None:
        """Checks values for the keys of `inputs`. Raises `InputError`."""

    def num_texts(self, inputs: Mapping[str, Any]) -> int:
        """Number of texts that are read together: 1, or 2."""
        return len(self.text_names)

    def row(self, value: Any, inputs: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The texts of a row, a tuple of texts or a list of a user; None if it has others."""
        is_row = isinstance(value, tuple | list) and all(isinstance(text, str) for text in value)
        return tuple(value) if is_row and len(value) == self.num_texts(inputs) else None

    def row_problem(
        self, texts: Sequence[Any], encoder: TextEncoder, inputs: Mapping[str, Any]
    ) -> str | None:
        """Why the texts of one row cannot be answered; None if they can be."""
        return None

    def reads(self, inputs: Mapping[str, Any]) -> str:
        """The texts of one row, for a message."""
        return " and ".join(f"a {name}" for name in self.text_names)

    # Answers.

    @abc.abstractmethod
    def outputs(
        self,
        run: RunBatch,
        texts: Sequence[Sequence[str]],
        encoder: TextEncoder,
        inputs: Mapping[str, Any],
        batch_size: int,
    ) -> tuple[list[Any], np.ndarray]:
        """The model's output for each text, in their order; bool `[rows]`: which texts are cut.

        `run` computes the logits of a batch of at most `batch_size` rows. `texts` are one list or
        two, of the same length. `inputs` are settings of the adapters, the same for all rows of a
        call.
        """

    @abc.abstractmethod
    def answers(self, outputs: Sequence[Any], config: Config) -> list[Answer]:
        """Answers of one adapter, as JSON; values after its own outputs belong to another."""

    @abc.abstractmethod
    def columns(self, config: Config) -> list[str]:
        """Names of an answer's columns in a table."""

    @staticmethod
    def cells(answer: Mapping[str, Any]) -> list[Any]:
        """An answer as the values of `columns`; None for a missing value."""
        single = [
            BETWEEN_LABELS.join(value) if isinstance(value, list) else value
            for name, value in answer.items()
            if name != "probabilities"
        ]
        return [*single, *answer.get("probabilities", {}).values()]

    # Serving.

    @abc.abstractmethod
    def serve_texts(self, run: Run, config: Config, pieces: Pieces) -> Any:
        """The signature that takes texts; `run` maps encoder inputs to logits."""

    def serve_rows(self, run: RunRows, configs: Sequence[Config], pieces: Pieces) -> RowAnswers:
        """Answers to batches of several tasks with the same `logits`, of a type that `mixes`.

        `run` maps encoder inputs and the number of each row's task in `configs` to logits, minus
        infinity beyond the task's own.
        """
        raise NotImplementedError

    def ragged_answer(self, signature: Any, names: Sequence[str]) -> Any:
        """A function that answers texts with ragged tensors, where the signature has flat ones.

        `signature` takes strings of these `names`, which are the arguments of the function. Returns
        None if the type needs no such function.
        """
        return None

    @abc.abstractmethod
    def serve_ids(self, run: Run, config: Config) -> Any:
        """The signature that takes word-piece ids, a concrete function."""
