"""Masked-language modelling: the word pieces behind [MASK], learned from texts without labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from adapter_bert_tf.adapters.modules import module_from_values
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.errors import InputError, Unsupported
from adapter_bert_tf.heads.masked_words.scores import (
    MASKED_WORDS_LEAVE_OUT,
    masked_word_logits,
    masked_word_specs,
)
from adapter_bert_tf.heads.serving_texts import Config, Pieces, Run
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types.batched_inference import RunBatch, by_length
from adapter_bert_tf.task_types.task_type import Answer, TaskType

if TYPE_CHECKING:
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.heads.masked_words.model import MaskedWordModel

BEST = 5  # Pieces in an answer.
MOST_SCORES = 1 << 24  # In memory at a time.


@dataclasses.dataclass(frozen=True)
class Filled:
    """What may stand at the masks of a text: the best pieces of each, and their probabilities."""

    pieces: list[list[str]]
    probabilities: list[list[float]]


class MaskedWords(TaskType):
    """The pieces behind [MASK] (Devlin et al. 2019, section 3.1); there are no labels."""

    name = file_head = "masked_words"
    predicts = "masked words"
    is_task = False
    labels = ()
    text_names = ("text",)
    example_texts = ("The cat sat on the [MASK].",)
    inputs: ClassVar[Mapping[str, Any]] = {"max_seq_length": 128}
    logits = staticmethod(masked_word_logits)
    command = "run_adapt.py"
    evaluation_flags = "--nodo_train --text_files=FILES"
    unused = MASKED_WORDS_LEAVE_OUT
    pipeline = "fill-mask"
    # Higher is better, so the mean log-likelihood of a piece stands for the loss.
    metrics = ("log_likelihood", "accuracy")
    details_kind = "masked_words"
    example = "sequence"

    def new_model(self, encoder: Any, outputs: int) -> MaskedWordModel:
        from adapter_bert_tf.heads.masked_words.model import MaskedWordModel

        return MaskedWordModel(encoder)

    def head_summary(self, labels: Sequence[str]) -> str:
        return self.predicts

    def specs(self, sizes: Sizes, labels: Sequence[str]) -> dict[str, VariableSpec]:
        return masked_word_specs(sizes)

    def logits_of(
        self,
        encoder: Any,
        inputs: Mapping[str, tf.Tensor],
        config: Any,
        values: Mapping[str, Tensor],
        stacked: str | None = None,
    ) -> tf.Tensor:
        """Scores of all pieces, float32 `[batch, seq, words]`."""
        module = module_from_values(config, values, stacked)
        return masked_word_logits(encoder, inputs, module, values, stacked)

    def own_logits(self, logits: tf.Tensor, outputs: int) -> tf.Tensor:
        return logits

    def without_padding(self, logits: tf.Tensor, length: int) -> tf.Tensor:
        return logits[:, :length]

    def check_labels(self, labels: Sequence[str]) -> None:
        if labels:
            raise InputError(f"masked words have no labels. Received: {preview(labels)}")

    def check_inputs(self, values: Mapping[str, Any]) -> None:
        if values["max_seq_length"] < 5:
            message = f"max_seq_length must be at least 5. Received: {values['max_seq_length']}"
            raise InputError(message, "max_seq_length")

    def evaluate(self, loss: float, hits: float, pieces: float) -> dict[str, float]:
        """Scores from sums over all masked pieces: cross-entropies in nats, right answers, pieces.

        Without pieces they are NaN.
        """
        mean = loss / pieces if pieces else float("nan")
        accuracy = hits / pieces if pieces else float("nan")
        return {
            "loss": mean,
            "perplexity": float(np.exp(mean)),
            "accuracy": accuracy,
            "log_likelihood": -mean,
        }

    def row_problem(
        self, texts: Sequence[Any], encoder: TextEncoder, inputs: Mapping[str, Any]
    ) -> str | None:
        """A text needs a mask among the word pieces that are read."""
        (text,), room = texts, inputs["max_seq_length"] - 2
        # Most texts need not be tokenized here: a character, decomposed, is at most four pieces.
        if 0 <= 4 * text.find(encoder.mask) < room:
            return None
        if encoder.mask_id() in encoder.with_masks(text)[:room]:
            return None
        return f"the text has no {encoder.mask} in its first {room} word pieces"

    def outputs(
        self,
        run: RunBatch,
        texts: Sequence[Sequence[str]],
        encoder: TextEncoder,
        inputs: Mapping[str, Any],
        batch_size: int,
    ) -> tuple[list[Any], np.ndarray]:
        """`Filled` of each text, in which `row_problem` found no problem."""
        mask_id, ids = encoder.mask_id(), [encoder.with_masks(text) for text in texts[0]]
        room = inputs["max_seq_length"] - 2
        are_cut = np.array([len(row) > room for row in ids], bool)
        rows = [np.array([encoder.start_id, *row[:room], encoder.end_id], np.int32) for row in ids]
        lengths = np.array([len(row) for row in rows])
        at_a_time = max(1, MOST_SCORES // (len(encoder.pieces) * max(lengths, default=1)))
        filled: dict[int, Filled] = {}
        for part in by_length(lengths, min(batch_size, at_a_time)) if rows else []:
            width = lengths[part].max()
            padded = np.stack([np.pad(rows[i], (0, width - lengths[i])) for i in part])
            mask = (np.arange(width) < lengths[part][:, np.newaxis]).astype(np.int32)
            types = np.zeros_like(padded)
            scores = run(
                part, {"input_word_ids": padded, "input_mask": mask, "input_type_ids": types}
            )
            for number, row_scores in zip(part.tolist(), scores, strict=True):
                places = np.flatnonzero(rows[number] == mask_id)
                filled[number] = _best(row_scores[places], encoder.pieces)
        return [filled[number] for number in range(len(rows))], are_cut

    def answers(self, outputs: Sequence[Filled], config: Config) -> list[Answer]:
        """Dicts with `words` and `probabilities`: of each mask the best word pieces."""
        return [{"words": o.pieces, "probabilities": o.probabilities} for o in outputs]

    def columns(self, config: Config) -> list[str]:
        return ["words", "probabilities"]

    @staticmethod
    def cells(answer: Mapping[str, Any]) -> list[Any]:
        """Lists, which a file of cells holds as JSON."""
        return list(answer.values())

    def serve_texts(self, run: Run, config: Config, pieces: Pieces) -> Any:
        raise _no_saved_model()

    def serve_ids(self, run: Run, config: Config) -> Any:
        raise _no_saved_model()


def _no_saved_model() -> Unsupported:
    return Unsupported("There is no SavedModel of masked words; Predictor fills their [MASK].")


def _best(scores: np.ndarray, pieces: Sequence[str]) -> Filled:
    """The best pieces by their scores, `[masks, words]`, which may have rows without a piece."""
    scores = scores[:, : len(pieces)].astype(np.float64)
    odds = np.exp(scores - scores.max(-1, keepdims=True))
    probabilities = odds / odds.sum(-1, keepdims=True)
    best = np.argsort(-probabilities, -1, kind="stable")[:, :BEST]
    return Filled(
        [[pieces[i] for i in row] for row in best.tolist()],
        np.take_along_axis(probabilities, best, -1).tolist(),
    )


MASKED_WORDS = MaskedWords()
