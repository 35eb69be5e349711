"""How a base splits text, as values; the defaults are those of Google's uncased BERT."""

import dataclasses
import hashlib
import json
from typing import Any

TOKENIZER = "tokenizer"  # The field of a base's fingerprint with `TokenizerSettings.differences`.


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """The word pieces with a role of their own."""

    pad: str = "[PAD]"
    unknown: str = "[UNK]"
    start: str = "[CLS]"
    end: str = "[SEP]"
    mask: str = "[MASK]"  # A vocabulary may have none.


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A piece that was added to a vocabulary; it is never split, and not a part of other pieces."""

    content: str
    id: int
    normalized: bool  # Whether it is found in normalized texts, or in texts as they are.


GOOGLE = SpecialTokens()


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """From text to word pieces.

    Args:
      lower_case: whether text is lower-cased.
      strip_accents: whether combining marks are removed; by default if text is lower-cased.
      split_chinese: whether each ideograph is a word.
      special: names of the special tokens.
      longest_word: characters; a longer word is unknown. 100 is transformers' limit, Google's 200.
      added: tokens that are pieces wherever they occur.
      longest_text: word pieces for which the base was meant, or None. This changes no piece.
    """

    lower_case: bool = True
    strip_accents: bool = True
    split_chinese: bool = True
    special: SpecialTokens = GOOGLE
    longest_word: int = 100
    added: tuple[AddedToken, ...] = ()
    longest_text: int | None = None

    def differences(self) -> dict[str, Any]:
        """The settings other than `lower_case` that change pieces, where they are not the default.

        These identify a base together with its pieces. Most bases have none, and no such field in
        their fingerprint.
        """
        values: dict[str, Any] = {}
        if self.strip_accents != self.lower_case:
            values["strip_accents"] = self.strip_accents
        if not self.split_chinese:
            values["split_chinese"] = False
        if self.special != GOOGLE:
            values["special"] = dataclasses.asdict(self.special)
        if self.longest_word != 100:
            values["longest_word"] = self.longest_word
        if self.added:
            rows = [dataclasses.astuple(token) for token in self.added]
            values["added_sha256"] = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
        return values
