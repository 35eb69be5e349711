"""The word-piece vocabulary of a base, and whether it expects lower-cased text."""

import dataclasses
import hashlib
import json
import os

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Word pieces in the order of their ids.

    Args:
      path: the file they were read from.
      pieces: tuple of strings.
      lower_case: whether text is lower-cased (and accents stripped) before it is split.
    """

    path: str
    pieces: tuple[str, ...]
    lower_case: bool

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def sha256(self) -> str:
        """Digest of the pieces in order, whatever the file's line ends."""
        return hashlib.sha256("\n".join(self.pieces).encode()).hexdigest()


def read_vocabulary(path: str, do_lower_case: bool | None = None) -> Vocabulary:
    """Reads and checks a vocabulary file.

    Args:
      path: text file (local or gs://), one word piece a line.
      do_lower_case: what the user says; None to infer it from the file.

    Raises:
      InputError: when it is not there, is no BERT vocabulary, or disagrees with `do_lower_case`.
    """
    try:
        text = storage.read_text(path)
    except tf.errors.NotFoundError as error:
        raise InputError(f"No vocabulary file at {path!r}.") from error
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {path!r}: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a UTF-8 text file: {error}") from error
    pieces = tuple(line.rstrip("\r") for line in text.removesuffix("\n").split("\n"))
    missing = [token for token in SPECIAL_TOKENS if token not in pieces]
    if missing:
        raise InputError(f"{path} is no BERT vocabulary: it has no {missing}.")
    return Vocabulary(path, pieces, _lower_case(path, pieces, do_lower_case))


def _lower_case(path: str, pieces: tuple[str, ...], do_lower_case: bool | None) -> bool:
    """What the vocabulary says of case; `do_lower_case` must agree with it."""
    specials = set(SPECIAL_TOKENS) | {"[MASK]"}
    has_upper = any(p not in specials and p != p.lower() and not p.startswith("[") for p in pieces)
    stated = _stated_lower_case(path)
    inferred = not has_upper if stated is None else stated
    if do_lower_case is not None and do_lower_case != inferred:
        kind = "uncased" if inferred else "cased"
        raise InputError(
            f"do_lower_case={do_lower_case} disagrees with {path}, which is {kind}: text and "
            f"vocabulary would not match. Leave it out, or use do_lower_case={inferred}.",
            f"do_lower_case={do_lower_case}",
            f"do_lower_case={inferred}",
        )
    return inferred


def _stated_lower_case(vocabulary_path: str) -> bool | None:
    """`do_lower_case` of the Hugging Face tokenizer config beside the vocabulary, if any."""
    path = os.path.join(os.path.dirname(vocabulary_path), "tokenizer_config.json")
    if not storage.exists(path):
        return None
    try:
        stated = dict(json.loads(storage.read_text(path))).get("do_lower_case")
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} is not a JSON object: {error}") from error
    return stated if isinstance(stated, bool) else None
