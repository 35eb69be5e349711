"""The word-piece vocabulary of a base, and whether it expects lower-cased text."""

import dataclasses
import hashlib
import os

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Conflict, Damaged, NotFound, Unavailable
from adapter_bert_tf.sanitize import preview

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LARGEST_FILE = 256 << 20


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Word pieces in the order of their ids."""

    path: str  # The file they were read from.
    pieces: tuple[str, ...]
    lower_case: bool  # Whether text is lower-cased, accents stripped, before it is split.

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def sha256(self) -> str:
        """Digest of the pieces in order, independent of line ends."""
        return hashlib.sha256("\n".join(self.pieces).encode()).hexdigest()


def read_vocabulary(path: str, do_lower_case: bool | None = None) -> Vocabulary:
    """Reads and checks a vocabulary file, local or gs://, with one word piece a line.

    `do_lower_case` is whether text is lower-cased; None infers it from the file. Raises
    `InputError` when the file is missing, not a BERT vocabulary, or contradicts `do_lower_case`.
    """
    try:
        text = storage.read_bytes(path, LARGEST_FILE).decode("utf-8-sig")
    except tf.errors.NotFoundError as error:
        raise NotFound(f"No vocabulary file at {path!r}.") from error
    except tf.errors.OpError as error:
        raise Unavailable(f"Cannot read {path!r}: {error}") from error
    except UnicodeDecodeError as error:
        raise Damaged(
            f"{path} is not a UTF-8 text file: {error}. Use the file that came with the checkpoint."
        ) from error
    pieces = tuple(line.rstrip("\r") for line in text.removesuffix("\n").split("\n"))
    missing = [token for token in SPECIAL_TOKENS if token not in pieces]
    if missing:
        raise Damaged(f"{path} is not a BERT vocabulary: it has no {missing}.")
    lines: dict[str, int] = {}
    for number, piece in enumerate(pieces, start=1):
        if piece in lines:  # Its id would be ambiguous.
            raise Damaged(
                f"{path}: lines {lines[piece]} and {number} are the same word piece. Received: "
                f"{preview(piece)}. Use the file that came with the checkpoint."
            )
        lines[piece] = number
    return Vocabulary(path, pieces, _lower_case(path, pieces, do_lower_case))


def _lower_case(path: str, pieces: tuple[str, ...], do_lower_case: bool | None) -> bool:
    """Whether the vocabulary is lower-cased. Raises `InputError` if `do_lower_case` differs."""
    specials = set(SPECIAL_TOKENS) | {"[MASK]"}
    has_upper = any(p not in specials and p != p.lower() and not p.startswith("[") for p in pieces)
    stated = _stated_lower_case(path)
    inferred = not has_upper if stated is None else stated
    if do_lower_case is not None and do_lower_case != inferred:
        kind = "uncased" if inferred else "cased"
        raise Conflict(
            f"do_lower_case={do_lower_case} contradicts {path}, which is {kind}. Leave it out, or "
            f"use do_lower_case={inferred}.",
            f"do_lower_case={do_lower_case}",
            f"do_lower_case={inferred}",
        )
    return inferred


def _stated_lower_case(vocabulary_path: str) -> bool | None:
    """`do_lower_case` in the Hugging Face tokenizer config of the vocabulary's folder, if any."""
    path = os.path.join(os.path.dirname(vocabulary_path), "tokenizer_config.json")
    if not storage.exists(path):
        return None
    stated = storage.read_json_object(path).get("do_lower_case")
    return stated if isinstance(stated, bool) else None
