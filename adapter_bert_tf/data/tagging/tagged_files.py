"""Whole files of tagged sentences, in IOB2."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence

from adapter_bert_tf.data.tagging.schemes import OUTSIDE, PLAIN, detect_scheme, split_tag, to_iob2
from adapter_bert_tf.data.tagging.sentences import Sentence, TagFormat, read_sentences
from adapter_bert_tf.errors import Damaged, Mismatch
from adapter_bert_tf.sanitize import preview


@dataclasses.dataclass(frozen=True)
class TaggedSentences:
    """All sentences of a file, in order."""

    path: str
    sentences: list[Sentence]  # In IOB2, or plain; tags may be None.
    scheme: str  # Of the file.

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The words of each sentence."""
        return [sentence.words for sentence in self.sentences]

    @property
    def tags(self) -> list[tuple[str, ...]]:
        """The tags of each sentence; only of files with tags."""
        return [sentence.tags or () for sentence in self.sentences]


def read_tagged(
    path: str, form: TagFormat, like: str | None = None, repair: bool = False
) -> TaggedSentences:
    """Reads a file of tagged sentences.

    Training and other files may be in different schemes: each is detected.

    Args:
      path: of the file.
      form: its columns or keys.
      like: the scheme of the training file, if it is known; tags are plain where those are.
      repair: whether a file that mixes schemes is read as `like` by conlleval's rules.

    Raises:
      InputError: for a file without words, or one that mixes schemes.
    """
    return in_iob2(list(read_sentences(path, form)), path, like, repair)


def in_iob2(
    sentences: Sequence[Sentence], path: str, like: str | None = None, repair: bool = False
) -> TaggedSentences:
    """Returns sentences of any scheme in IOB2; see `read_tagged`."""
    if not any(sentence.words for sentence in sentences):
        raise Damaged(f"{path} is empty: it has no words.")
    scheme = PLAIN if like == PLAIN else detect_scheme(sentences, path, like if repair else None)
    texts: dict[str, str] = {}  # One object for each tag, for memory.
    converted = [
        dataclasses.replace(
            sentence,
            tags=tuple(texts.setdefault(t, t) for t in to_iob2(sentence.tags or (), scheme)),
        )
        for sentence in sentences
    ]
    return TaggedSentences(path, converted, scheme)


def check_labels(
    tagged: TaggedSentences, labels: Collection[str], origin: str, advice: str = ""
) -> None:
    """Raises `InputError`, with the lines, for tags that are not among `labels`.

    `origin` says where the labels come from: "the training data". `advice` ends the message.
    """
    known = set(labels)
    first: dict[str, int] = {}
    for sentence in tagged.sentences:
        for word, tag in enumerate(sentence.tags or ()):
            if tag not in known:
                first.setdefault(split_tag(tag)[1] or tag, sentence.line_of(word))
    if first:
        places = ", ".join(f"{preview(tag)} (line {line})" for tag, line in [*first.items()][:5])
        kinds = sorted({split_tag(label)[1] or label for label in known} - {OUTSIDE})
        raise Mismatch(
            f"{tagged.path} has tags that {origin} has not: {places}. Known: {preview(kinds)}."
            f"{advice}"
        )


def label_ids(tags: Iterable[Sequence[str]], labels: Sequence[str]) -> list[list[int]]:
    """Returns the ids of the tags of each sentence."""
    ids = {label: number for number, label in enumerate(labels)}
    return [[ids[tag] for tag in sentence] for sentence in tags]
