"""From logits of words to tags: the best of each word, or the best valid sequence."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.data.tagging.schemes import OUTSIDE, PLAIN, Transitions, transitions
from adapter_bert_tf.errors import Diverged, Unsupported
from adapter_bert_tf.lazy import tf

VITERBI, ARGMAX = "viterbi", "argmax"
DECODINGS = (VITERBI, ARGMAX)
UNLIKELY = -1e9  # A logit whose softmax is 0, and finite.
MOST_LABELS = 1000  # Of entities; a batch holds a table of transitions for each sentence.
AT_ONCE = 1 << 16  # Words of a batch, padding included.


@dataclasses.dataclass(frozen=True)
class DecodedTags:
    """The tags of a sentence.

    Args:
      tags: one tag for each word.
      probabilities: float32 `[words]`, the softmax probability of each chosen tag; a word without
        pieces is masked, as it has none.
    """

    tags: tuple[str, ...]
    probabilities: np.ma.MaskedArray

    def of_entity(self, first: int, last: int) -> float:
        """The least probability of the words `first` to `last - 1`; 1 where none has one."""
        return float(self.probabilities[first:last].filled(1).min())


def viterbi(
    log_probabilities: tf.Tensor,
    counts: tf.Tensor,
    start: tf.Tensor,
    between: tf.Tensor,
    end: tf.Tensor,
) -> tf.Tensor:
    """The most probable sequence of tags that transitions allow (Viterbi 1967).

    Args:
      log_probabilities: float32 `[batch, words, tags]`; a constant added to all tags of a word has
        no effect, so logits do as well.
      counts: int32 `[batch]`, the number of words of each sentence; others are padding.
      start: bool `[tags]`, which tags may be the first.
      between: bool `[tags, tags]`, which tags (columns) may follow which (rows).
      end: bool `[tags]`, which tags may be the last. All three may have a leading `[batch]`.

    Returns:
      int32 `[batch, words]`, 0 in the padding. A path of allowed transitions must exist.
    """
    words, tags = tf.unstack(tf.shape(log_probabilities))[1:]
    width = tf.maximum(words, 1)
    padded = tf.pad(log_probabilities, [[0, 0], [0, width - words], [0, 0]])
    by_word = tf.transpose(padded, [1, 0, 2])
    forbidden = tf.where(between, 0.0, -np.inf)
    same = tf.broadcast_to(tf.range(tags), tf.shape(by_word)[1:])

    def forward(word: tf.Tensor, scores: tf.Tensor, origins: Any) -> tuple[Any, ...]:
        candidates = scores[:, :, tf.newaxis] + forbidden
        best = by_word[word] + tf.reduce_max(candidates, 1)
        best -= tf.reduce_max(best, 1, keepdims=True)  # Near 0, where float32 is exact.
        is_word = (word < counts)[:, tf.newaxis]
        origin = tf.where(is_word, tf.argmax(candidates, 1, tf.int32), same)
        return word + 1, tf.where(is_word, best, scores), origins.write(word, origin)

    def backward(word: tf.Tensor, tag: tf.Tensor, path: Any) -> tuple[Any, ...]:
        before = tf.gather(origins.read(word), tag, batch_dims=1)
        return word - 1, before, path.write(word, tag)

    origins = tf.TensorArray(tf.int32, width, element_shape=by_word.shape[1:])
    path = tf.TensorArray(tf.int32, width, element_shape=by_word.shape[1:2])
    scores = tf.where(start, by_word[0], -np.inf)
    # No word has an origin before the first, but XLA needs the shape of the elements.
    state: Any = (1, scores, origins.write(0, same))
    _, scores, origins = tf.while_loop(lambda word, *_: word < width, forward, state)
    last = tf.argmax(tf.where(end, scores, -np.inf), 1, tf.int32)
    state = (width - 1, last, path.write(width - 1, last))
    _, first, path = tf.while_loop(lambda word, *_: word > 0, backward, state)
    best = tf.transpose(path.write(0, first).stack())[:, :words]
    return tf.where(tf.sequence_mask(counts, words), best, 0)


def best_tags(
    logits: tf.Tensor,
    counts: tf.Tensor,
    start: tf.Tensor,
    between: tf.Tensor,
    end: tf.Tensor,
    decoding: str,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The tags of sentences; arguments as of `viterbi`, which `decoding` may choose.

    Returns:
      two `[batch, words]`: int32 numbers of tags, and their float32 softmax probabilities.
    """
    with tf.device("CPU:0"):  # A GPU would start a dozen small kernels for each word.
        if decoding == VITERBI:
            chosen = viterbi(logits, counts, start, between, end)
        else:
            chosen = tf.argmax(logits, -1, tf.int32)
        return chosen, tf.gather(tf.nn.softmax(logits), chosen, batch_dims=2)


def require_decodable(labels: Sequence[str], scheme: str) -> None:
    """Raises `InputError` for more tags of entities than a table of transitions can hold."""
    if scheme != PLAIN and len(labels) > MOST_LABELS:
        raise Unsupported(
            f"At most {MOST_LABELS:,} tags can mark entities. Received: {len(labels):,}"
        )


class TagRules:
    """What the tags of an adapter decide of a decoding.

    Args:
      labels: the tags in the order of their numbers.
      scheme: of the tags, one of `data.tagging.schemes.SCHEMES`; `PLAIN`: all sequences are valid.
      decoding: one of `DECODINGS`.

    Raises:
      InputError: as `require_decodable`.
    """

    def __init__(self, labels: Sequence[str], scheme: str, decoding: str) -> None:
        self.labels = list(labels)
        require_decodable(labels, scheme)
        is_free = scheme == PLAIN or decoding == ARGMAX
        anything = Transitions(np.ones(1, bool), np.ones((1, 1), bool), np.ones(1, bool))
        self.valid = valid = anything if is_free else transitions(labels, scheme)
        # Labels that form no valid sequence, such as I-PER alone, have nothing to respect, and so
        # have B-A and E-A without "O", which form none of three words.
        alone = valid.start & valid.end & valid.between.diagonal()
        exists = alone.any() or (valid.start.any() and valid.end.all())
        self.decoding = VITERBI if not is_free and exists else ARGMAX

    def unread(self) -> np.ndarray:
        """The logits of a word without pieces, float32 `[tags]`: "O", or else the first tag."""
        logits = np.full(len(self.labels), UNLIKELY, np.float32)
        logits[self.labels.index(OUTSIDE) if OUTSIDE in self.labels else 0] = 0
        return logits


def decode(
    logits: Sequence[np.ndarray], labels: Sequence[str], scheme: str, decoding: str
) -> list[DecodedTags]:
    """The tags of each sentence, in their order.

    A word without pieces, whose logits are masked, gets "O" or, without such a tag, the first one.

    Args:
      logits: of each sentence, float32 `[words, tags]` or of more columns, which are ignored.
      labels, scheme, decoding: as of `TagRules`.

    Raises:
      InputError: as `TagRules`; `Diverged` for logits that are not finite.
    """
    decoded: dict[int, DecodedTags] = {}
    rules = TagRules(labels, scheme, decoding)
    run, unread = _compiled(rules.decoding), rules.unread()
    most_rows = max(AT_ONCE * 32 // rules.valid.between.size, 1)
    for rows in _parts([len(words) for words in logits], most_rows):
        counts = np.array([len(logits[row]) for row in rows], np.int32)
        padded = np.tile(unread, (len(rows), counts.max(), 1))
        is_unread = np.ones(padded.shape[:2], bool)
        for place, row in enumerate(rows):
            own = logits[row][:, : len(labels)]
            masked = np.ma.getmaskarray(own).all(1)
            is_unread[place, : len(own)] = masked
            padded[place, : len(own), : own.shape[1]][~masked] = np.ma.getdata(own)[~masked]
        _require_finite(padded)
        parts = [part.numpy() for part in run(padded, counts, *rules.valid)]
        for row, count, *values in zip(rows, counts, *parts, is_unread, strict=True):
            numbers, shares, masked = (value[:count] for value in values)
            tags = tuple(labels[number] for number in numbers)
            decoded[row] = DecodedTags(tags, np.ma.masked_array(shares, masked))
    return [decoded[row] for row in range(len(logits))]


def _require_finite(logits: np.ndarray) -> None:
    if not np.isfinite(logits).all():
        raise Diverged(
            "The model gives words values that are not finite numbers, so its training diverged. "
            "Train it with a lower learning rate."
        )


@functools.lru_cache(maxsize=len(DECODINGS))
def _compiled(decoding: str) -> Callable[..., Any]:
    return compiled(
        functools.partial(best_tags, decoding=decoding),
        input_signature=[
            tf.TensorSpec([None, None, None], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None], tf.bool),
            tf.TensorSpec([None, None], tf.bool),
            tf.TensorSpec([None], tf.bool),
        ],
    )


def _parts(lengths: Sequence[int], most_rows: int) -> Iterator[list[int]]:
    """Yields numbers of rows, the shortest first, in batches of at most `AT_ONCE` words."""
    part: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        is_full = len(part) == most_rows or (len(part) + 1) * lengths[row] > AT_ONCE
        if part and is_full:
            yield part
            part = []
        part.append(row)
    if part:
        yield part
