"""Schemes of tags: detection, conversion, entities, and which tag may follow which.

A tag is `O` or a prefix and a type, `B-PER`; types may contain hyphens. Where all tags of a file
are prefixes alone (`B`, `I`, `O`), the type is `_`, as in seqeval.

| scheme | prefixes |
| --- | --- |
| IOB2 | B begins an entity, I continues it |
| IOB1 | I; B begins an entity right after another one of its type |
| IO | I |
| BIOES | B begins, I continues, E ends; S is an entity of one word |
| BILOU | B begins, I continues, L ends; U is an entity of one word |
| plain | none: each word has a tag of its own, such as a part of speech |
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from adapter_bert_tf.data.tagging.tag_format import Sentence
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks.tag_metrics import PLAIN as PLAIN

SCHEMES = ("IOB1", "IOB2", "BIOES", "BILOU", "IO", PLAIN)
OUTSIDE = "O"
UNTYPED = "_"
PREFIXES = {"IOB2": "BI", "IO": "I", "IOB1": "BI", "BIOES": "BIES", "BILOU": "BILU"}
# The prefixes of the last word of an entity, and of an entity of one word.
ENDS = {"BIOES": ("E", "S"), "BILOU": ("L", "U")}
TAG = re.compile(r"([BIESLU])(?:-(.+))?", re.DOTALL)
# Plain tags that may be meant as entities: `b-per`, `B_PER`, `PER-B`, `B-`, `O`.
DOUBTFUL = re.compile(r"[biesul][-_].*|.*[-_][biesul]|o", re.DOTALL | re.IGNORECASE)


def split_tag(tag: str) -> tuple[str, str]:
    """Returns prefix and type: ("B", "PER") of `B-PER`, ("B", "_") of `B`, ("", "") of others."""
    match = TAG.fullmatch(tag)
    return (match[1], match[2] or UNTYPED) if match else ("", "")


def join_tag(prefix: str, kind: str) -> str:
    """Returns the tag of a prefix and a type."""
    return prefix if kind == UNTYPED else f"{prefix}-{kind}"


def detect_scheme(sentences: Iterable[Sentence], path: str, repaired: str | None = None) -> str:
    """Returns the scheme of the tags of all sentences of a file.

    Several schemes may fit. IOB2 is taken if all entities have one word (`B-` and `O` only), or if
    there are none, and IO if all tags are `I-` or `O`.

    Args:
      sentences: with tags.
      path: for messages.
      repaired: the scheme to return, with a warning, if none fits and the tags have its prefixes;
        `to_iob2` then reads them by conlleval's rules.

    Raises:
      InputError: with the first lines that do not fit, if no scheme fits all tags.
    """
    pairs = _TagPairs()
    for sentence in sentences:
        pairs.add(sentence)
    return pairs.scheme(path, repaired)


@dataclasses.dataclass
class _TagPairs:
    """The distinct pairs of neighbouring tags: how often each occurs, and its first line."""

    counts: collections.Counter[tuple[str | None, str | None]] = dataclasses.field(
        default_factory=collections.Counter
    )
    lines: dict[tuple[str | None, str | None], int] = dataclasses.field(default_factory=dict)

    def add(self, sentence: Sentence) -> None:
        """Adds the pairs of a sentence; None stands before the first tag and after the last."""
        tags = (None, *(sentence.tags or ()), None)
        for number, pair in enumerate(itertools.pairwise(tags)):
            if pair not in self.counts:
                self.lines[pair] = sentence.line_of(min(number, len(tags) - 3))
            self.counts[pair] += 1

    def scheme(self, path: str, repaired: str | None) -> str:
        """Returns the scheme that fits all pairs; see `detect_scheme`."""
        tags = {tag for _, tag in self.counts if tag not in (None, OUTSIDE)}
        types = {split_tag(tag or "")[1] for tag in tags}
        if "" in types and types <= {"", UNTYPED}:  # `I` may be a part of speech.
            self._warn_of_doubtful(path)
            return PLAIN
        misfits = {
            scheme: [pair for pair in self.counts if not _fits(*pair, scheme)]
            for scheme in (*PREFIXES, PLAIN)
        }
        best = min(misfits, key=lambda scheme: sum(self.counts[p] for p in misfits[scheme]))
        if not misfits[best]:
            return best
        message = f"{path}: the tags mix schemes. {self._message(best, misfits[best])}"
        if repaired and self._has_prefixes(repaired):
            logging.warning("%s They are read by conlleval's rules.", message)
            return repaired
        if not self._has_prefixes(best):
            raise Damaged(f"{message} Write all tags in one of {', '.join(SCHEMES)}.")
        raise Damaged(
            f"{message} Correct them, or pass scheme={best!r}: then a tag that continues nothing "
            "begins an entity.",
            f"scheme={best!r}",
        )

    def _warn_of_doubtful(self, path: str) -> None:
        """Warns of plain tags that look like those of entities."""
        lines = {
            pair: line
            for pair, line in self.lines.items()
            if pair[1] is not None and DOUBTFUL.fullmatch(pair[1])
        }
        if lines:
            first = min(lines, key=lambda pair: (pair[1] in ("O", "o"), lines[pair]))
            logging.warning(
                "%s, line %d: the tags count as plain, one for each word, and mark no entities. "
                "Tags of entities are O, or B-PER with a capital letter, a hyphen and a type. "
                "Received: %s. The scheme 'plain' takes them without this warning.",
                path,
                lines[first],
                preview(first[1]),
            )

    def _has_prefixes(self, scheme: str) -> bool:
        """Whether all tags other than `O` have a prefix of the scheme."""
        tags = {tag for _, tag in self.counts if tag not in (None, OUTSIDE)}
        prefixes = [split_tag(tag or "")[0] for tag in tags]
        return all(prefix and prefix in PREFIXES.get(scheme, "") for prefix in prefixes)

    def _message(self, scheme: str, misfits: list[tuple[str | None, str | None]]) -> str:
        listed = sorted(misfits, key=lambda pair: self.lines[pair])
        count = sum(self.counts[pair] for pair in misfits)
        places = ", ".join(
            f"line {self.lines[pair]} ({_shown(pair[1])} after {_shown(pair[0])})"
            for pair in listed[:5]
        )
        return (
            f"{scheme} fits best, but not in {count:,} {'place' if count == 1 else 'places'}: "
            f"{places}."
        )


def _shown(tag: str | None) -> str:
    return "the edge of the sentence" if tag is None else preview(tag)


def _fits(previous: str | None, tag: str | None, scheme: str) -> bool:
    """Whether a tag may follow another in a scheme; None is the edge of a sentence."""
    before, before_type = split_tag(previous or "")
    prefix, kind = split_tag(tag or "")
    if scheme == PLAIN:
        return not prefix
    if tag not in (None, OUTSIDE) and (not prefix or prefix not in PREFIXES[scheme]):
        return False
    continues = bool(before) and before_type == kind
    if scheme == "IO":
        return True
    if scheme == "IOB1":
        return prefix != "B" or continues
    if scheme == "IOB2":
        return prefix != "I" or continues
    last, single = ENDS[scheme]
    is_open = bool(before) and before in "BI"
    return (continues and prefix in ("I", last)) if is_open else prefix in ("", "B", single)


def to_iob2(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """Returns the tags in IOB2; plain tags stay. An I without a beginning becomes a B."""
    if scheme == PLAIN:
        return tuple(tags)
    converted, open_type = [], ""  # The type that an I would continue.
    for tag in tags:
        prefix, kind = split_tag(tag)
        begins = prefix in ("B", "S", "U") or kind != open_type
        converted.append(join_tag("B" if begins else "I", kind) if prefix else OUTSIDE)
        open_type = "" if prefix in ("E", "S", "L", "U") else kind
    return tuple(converted)


def from_iob2(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """Returns IOB2 tags in another scheme; IO joins entities of a type that are side by side."""
    if scheme in (PLAIN, "IOB2"):
        return tuple(tags)
    converted = list(tags)
    end, end_type = -1, ""  # Of the entity before.
    for kind, first, last in entities(tags):
        touches = end == first and end_type == kind
        prefixes = _prefixes(scheme, last - first, touches)
        converted[first:last] = [join_tag(prefix, kind) for prefix in prefixes]
        end, end_type = last, kind
    return tuple(converted)


def _prefixes(scheme: str, words: int, touches: bool) -> list[str]:
    """Returns the prefixes of an entity; `touches`: one of its type ends right before it."""
    if scheme in ENDS:
        last, single = ENDS[scheme]
        return [single] if words == 1 else ["B", *"I" * (words - 2), last]
    return ["B" if touches and scheme == "IOB1" else "I", *"I" * (words - 1)]


def entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns (type, first word, last word + 1) of each entity, in order, by conlleval's rules.

    An I continues an entity of its type, and begins one otherwise. The tags may be of any scheme
    with prefixes.
    """
    found: list[tuple[str, int, int]] = []
    for number, tag in enumerate(to_iob2(tags, "IOB2")):
        prefix, kind = split_tag(tag)
        if prefix == "B":
            found.append((kind, number, number + 1))
        elif prefix:
            found[-1] = (kind, found[-1][1], number + 1)
    return found


def labels_of(tags: Iterable[Sequence[str]], scheme: str) -> list[str]:
    """Returns the labels of IOB2 or plain tags, in the order of their ids.

    `O` comes first, then B and I of each type; the types and plain tags are sorted. A type has
    both labels, also if all its entities have one word.
    """
    seen = {tag for sentence in tags for tag in sentence}
    if scheme == PLAIN:
        return sorted(seen)
    types = sorted({split_tag(tag)[1] for tag in seen} - {""})
    return [OUTSIDE, *(join_tag(prefix, kind) for kind in types for prefix in "BI")]


class Transitions(NamedTuple):
    """Valid sequences of labels.

    Args:
      start: bool `[labels]`, which may begin a sentence.
      between: bool `[labels, labels]` of a label and the next one.
      end: bool `[labels]`, which may end a sentence.
    """

    start: np.ndarray
    between: np.ndarray
    end: np.ndarray


def transitions(labels: Sequence[str], scheme: str) -> Transitions:
    """Returns which labels may begin a sentence, follow each other, and end it.

    Args:
      labels: IOB2 or plain; of an adapter from elsewhere BIOES or BILOU.
      scheme: of the files. IO cannot have two entities of a type side by side.
    """
    if scheme == PLAIN:
        anything = np.ones(len(labels), bool)
        return Transitions(anything, np.ones([len(labels)] * 2, bool), anything)
    prefixes = {split_tag(label)[0] for label in labels} - {""}
    own = next((name for name in ("IOB2", *ENDS) if prefixes <= {*PREFIXES[name]}), "IOB2")
    start = np.array([_fits(None, label, own) for label in labels])
    between = np.array([[_fits(one, next_, own) for next_ in labels] for one in labels])
    end = np.array([_fits(label, None, own) for label in labels])
    if scheme == "IO":
        parts = [split_tag(label) for label in labels]
        for row, (_, before) in enumerate(parts):
            for column, (prefix, kind) in enumerate(parts):
                between[row, column] &= not (prefix == "B" and before == kind)
    return Transitions(start, between, end)
