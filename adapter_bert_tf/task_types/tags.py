"""Tagging: a tag for each word of a text, such as names of people and places."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from adapter_bert_tf.data.tagging.schemes import (
    OUTSIDE,
    PLAIN,
    PREFIXES,
    SCHEMES,
    entities,
    split_tag,
)
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import serving_texts
from adapter_bert_tf.heads.serving_texts import (
    Config,
    Pieces,
    RowAnswers,
    Run,
    RunRows,
    Tensors,
)
from adapter_bert_tf.heads.tag_decoding import (
    ARGMAX,
    DECODINGS,
    VITERBI,
    DecodedTags,
    decode,
)
from adapter_bert_tf.heads.tag_logits import TAGS_LEAVE_OUT, tag_logits
from adapter_bert_tf.heads.tag_windows import MergedWindows
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import tag_report
from adapter_bert_tf.task_types.batched_inference import Inputs, RunBatch, by_length, map_parallel
from adapter_bert_tf.task_types.task_type import Answer, TaskType

if TYPE_CHECKING:
    from adapter_bert_tf.base.tokenizer_settings import TokenizerSettings
    from adapter_bert_tf.data.tagging.windows import Windows
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.heads.specs import HeadOf
    from adapter_bert_tf.heads.tagger import Tagger
    from adapter_bert_tf.heads.task_model import EncoderModel

Words: TypeAlias = Sequence[str]


@dataclasses.dataclass(frozen=True)
class WordLogits:
    """The words of a text, and the model's output for each.

    Args:
      text: None where the words were given.
      words: in their order.
      starts, ends: int `[words]`, in characters of the text; empty without a text.
      logits: float32 `[words, tags]`; masked for words without pieces.
    """

    text: str | None
    words: Words
    starts: np.ndarray
    ends: np.ndarray
    logits: np.ndarray


class Tags(TaskType):
    """A tag for each word; tags of a scheme such as IOB2 mark entities (CoNLL-2003).

    The labels are IOB2 tags, whatever the scheme of the training files, or plain tags.
    """

    name = file_head = "tags"
    predicts = "tags"
    text_names = ("text",)
    example_texts = ("Anna lives in Paris.",)
    inputs: ClassVar[Mapping[str, Any]] = {
        "max_seq_length": 128,
        "stride": 32,
        "scheme": "IOB2",
        "decoding": VITERBI,
    }
    logits = staticmethod(tag_logits)
    command = "run_tagger.py"
    unused = TAGS_LEAVE_OUT
    mixes = True
    pipeline = "token-classification"
    metrics = ("f1", "precision", "recall", "strict_f1", "accuracy")
    details_kind = "tags"
    example = "sentence"
    report_parts = tag_report.PARTS

    def new_model(self, encoder: Any, outputs: int) -> Tagger:
        from adapter_bert_tf.heads.tagger import Tagger

        return Tagger(encoder, outputs, dropout=encoder.config["output_dropout"])

    def new_mixed_model(self, encoder: Any, heads: Sequence[HeadOf]) -> EncoderModel:
        from adapter_bert_tf.heads.mixed.tagger import MixedTagger

        return MixedTagger(encoder, heads, dropout=encoder.config["output_dropout"])

    def mixed_labels(self, labels: Any, first: int) -> tf.RaggedTensor:
        """Pairs of a position and a tag's number, as of `features_of`, among the tags of all."""
        return labels.with_flat_values(labels.flat_values + tf.constant([0, first]))

    def head_summary(self, labels: Sequence[str]) -> str:
        types = dict.fromkeys(kind for label in labels if (kind := split_tag(label)[1]))
        shown = list(types or labels)
        more = "..." if len(shown) > 5 else ""
        what = "types of entities" if types else "tags"
        return f"{len(shown)} {what} ({', '.join(shown[:5])}{more})"

    def numeric_outputs(self, logits: tf.Tensor) -> Tensors:
        """Logits and probabilities of each position; a word's are those of its first."""
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}

    def without_padding(self, logits: tf.Tensor, length: int) -> tf.Tensor:
        return logits[:, :length]

    def own_logits(self, logits: tf.Tensor, outputs: int) -> tf.Tensor:
        return logits[..., :outputs]

    def inputs_for(self, labels: Sequence[str]) -> dict[str, Any]:
        """The scheme; argmax where the labels are not IOB2, whose transitions are known."""
        parts = [split_tag(label) for label in labels if label != OUTSIDE]
        prefixes = {prefix for prefix, _ in parts}
        if "" in prefixes or not parts:
            return {"scheme": PLAIN}
        if {("B", kind) for _, kind in parts} <= {*parts} and prefixes <= {"B", "I"}:
            return {"scheme": "IOB2"}
        schemes = (name for name, own in PREFIXES.items() if prefixes <= {*own})
        smallest = min(schemes, key=lambda name: len(PREFIXES[name]), default=PLAIN)
        return {"scheme": smallest, "decoding": ARGMAX}

    def check_inputs(self, values: Mapping[str, Any]) -> None:
        for name, least in (("max_seq_length", 5), ("stride", 0)):
            if values[name] < least:
                raise InputError(f"{name} must be at least {least}. Received: {values[name]}", name)
        for name, known in (("scheme", SCHEMES), ("decoding", DECODINGS)):
            if values[name] not in known:
                raise InputError(f"{name} must be one of {known}. Received: {preview(values)}")

    def row(self, value: Any, inputs: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """A tuple of one text, or of the tuple of its words, which a user gives as a list."""
        if isinstance(value, list):
            value = (tuple(value),)
        if not isinstance(value, tuple) or len(value) != 1:
            return None
        words = [value[0]] if isinstance(value[0], str) else value[0]
        is_text = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
        return value if is_text else None

    def reads(self, inputs: Mapping[str, Any]) -> str:
        return "one text, or a list of its words"

    def outputs(
        self,
        run: RunBatch,
        texts: Sequence[Sequence[Any]],
        encoder: TextEncoder,
        inputs: Mapping[str, Any],
        batch_size: int,
    ) -> tuple[list[Any], np.ndarray]:
        """`WordLogits` of each text, a string or words; nothing is cut, as there are windows."""
        from adapter_bert_tf.data.tagging.windows import make_windows

        rows = _read_rows(texts[0], encoder.word_pieces.settings)
        all_words = [row.words for row in rows]
        windows = make_windows(all_words, encoder, inputs["max_seq_length"], inputs["stride"])
        merged = MergedWindows(windows, [len(words) for words in all_words])

        def compute(part: np.ndarray) -> np.ndarray:
            return run(windows.sentence[part], _window_inputs(windows, part))

        parts = by_length(windows.lengths, batch_size) if len(windows.lengths) else []
        for part, logits in zip(parts, map_parallel(compute, parts), strict=True):
            merged.add(part, logits)
        outputs = [
            dataclasses.replace(row, logits=logits)
            for row, logits in zip(rows, merged.sentences(), strict=True)
        ]
        return outputs, np.zeros(len(rows), bool)

    def answers(self, outputs: Sequence[WordLogits], config: Config) -> list[Answer]:
        """Dicts with `entities`, `words` and `tags`, or of plain tags with `probabilities`, where
        None stands for a word without pieces.

        The tags are IOB2. An entity has `text`, `type`, `start` and `end`, in characters of the
        text or in words of a list, and `probability`, the least of its words' tags.
        """
        labels, inputs = config["labels"], config["inputs"]
        logits = [output.logits for output in outputs]
        decoded = decode(logits, labels, inputs["scheme"], inputs["decoding"])
        answer = _plain_answer if inputs["scheme"] == PLAIN else _entity_answer
        return [answer(output, tags) for output, tags in zip(outputs, decoded, strict=True)]

    def details(self, *sentences: Any) -> dict[str, Any]:
        """See `tag_details`."""
        from adapter_bert_tf.task_types.tag_details import tag_details

        return tag_details(*sentences)

    def columns(self, config: Config) -> list[str]:
        is_plain = config["inputs"]["scheme"] == PLAIN
        return ["words", "tags", "probabilities"] if is_plain else ["entities", "words", "tags"]

    @staticmethod
    def cells(answer: Mapping[str, Any]) -> list[Any]:
        """Lists, which a file of cells holds as JSON."""
        return list(answer.values())

    # Serving.

    def serve_texts(self, run: Run, config: Config, pieces: Pieces) -> Any:
        from adapter_bert_tf.heads.serving_tags import TextTagger

        tagger = TextTagger(lambda inputs, which: run(inputs), [config], pieces)
        return serving_texts.text_signature(self.text_names, tagger)

    def serve_rows(self, run: RunRows, configs: Sequence[Config], pieces: Pieces) -> RowAnswers:
        from adapter_bert_tf.heads.serving_tags import TagRows

        return TagRows(run, configs, pieces)

    def ragged_answer(self, signature: Any, names: Sequence[str]) -> Any:
        """From strings `[batch]` to a dict of ragged `[batch, (entities or words)]`."""
        from adapter_bert_tf.heads.serving_tags import ragged_values

        def answer(*texts: tf.Tensor, **named: tf.Tensor) -> dict[str, Any]:
            return ragged_values(signature(**dict(zip(names, texts, strict=False)), **named))

        # A SavedModel keeps the names of the arguments, which the caller may write.
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind) for name in names]
        answer.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in names]
        return tf.function(answer, input_signature=specs, autograph=False)

    def serve_ids(self, run: Run, config: Config) -> Any:
        return serving_texts.id_signature(lambda inputs: self.numeric_outputs(run(inputs)))


TAGS = Tags()


def _read_rows(rows: Sequence[str | Words], settings: TokenizerSettings) -> list[WordLogits]:
    """The words of each row, which is a text or already words; without logits."""
    from adapter_bert_tf.data.tagging.words import split_texts

    texts = [row for row in rows if isinstance(row, str)]
    # Rows of a ragged tensor would take as long as the model.
    words, starts, ends = (
        np.split(part.flat_values.numpy(), part.row_splits.numpy()[1:-1])
        for part in split_texts(texts, settings)
    )
    split = iter(zip(texts, words, starts, ends, strict=True))
    nothing = np.zeros(0, np.int64)
    read = []
    for row in rows:
        if not isinstance(row, str):
            read.append(WordLogits(None, row, nothing, nothing, nothing))
            continue
        text, in_bytes, first, last = next(split)
        read.append(WordLogits(text, [w.decode() for w in in_bytes], first, last, nothing))
    return read


def _window_inputs(windows: Windows, rows: np.ndarray) -> Inputs:
    """The encoder's inputs of the windows with these numbers, padded to the longest."""
    ids = tf.gather(windows.ids, rows).to_tensor().numpy()
    mask = np.arange(ids.shape[1]) < windows.lengths[rows][:, np.newaxis]
    types = np.zeros_like(ids)
    return {"input_word_ids": ids, "input_mask": mask.astype(np.int32), "input_type_ids": types}


def _entity_answer(output: WordLogits, decoded: DecodedTags) -> Answer:
    found = []
    for kind, first, last in entities(decoded.tags):
        start, end, text = first, last, " ".join(output.words[first:last])
        if output.text is not None:
            start, end = int(output.starts[first]), int(output.ends[last - 1])
            text = output.text[start:end]
        span = {"start": start, "end": end, "probability": decoded.of_entity(first, last)}
        found.append({"text": text, "type": kind, **span})
    return {"entities": found, "words": list(output.words), "tags": list(decoded.tags)}


def _plain_answer(output: WordLogits, decoded: DecodedTags) -> Answer:
    probabilities = decoded.probabilities.tolist()
    words, tags = list(output.words), list(decoded.tags)
    return {"words": words, "tags": tags, "probabilities": probabilities}
