"""The word-piece vocabulary of a base, and how it expects text to be split."""

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Sequence

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.base.tokenizer_files import TOKENIZER, TokenizerFiles, read_tokenizer_files
from adapter_bert_tf.base.tokenizer_settings import AddedToken, SpecialTokens, TokenizerSettings
from adapter_bert_tf.errors import Conflict, Damaged, NotFound, Unavailable
from adapter_bert_tf.sanitize import preview

LARGEST_FILE = 256 << 20
LARGEST_PIECE = 250  # Bytes.
# Uncased vocabularies have capitals only in words that users wrote over unused lines; cased ones
# have them in a quarter of the pieces or more.
CASED_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Word pieces in the order of their ids."""

    path: str  # The file they were read from.
    pieces: tuple[str, ...]
    tokenizer: TokenizerSettings
    case_is_inferred: bool = False  # From the pieces: neither a file nor the user states it.

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def lower_case(self) -> bool:
        """Whether text is lower-cased before it is split."""
        return self.tokenizer.lower_case

    @property
    def sha256(self) -> str:
        """Digest of the pieces in order, independent of line ends."""
        return hashlib.sha256("\n".join(self.pieces).encode()).hexdigest()

    def with_case(self, lower_case: bool) -> "Vocabulary":
        """The vocabulary with another case, if its own was inferred; else itself."""
        settings = self.tokenizer
        if not self.case_is_inferred or lower_case == settings.lower_case:
            return self
        follows = settings.strip_accents == settings.lower_case
        strip_accents = lower_case if follows else settings.strip_accents
        settings = dataclasses.replace(settings, lower_case=lower_case, strip_accents=strip_accents)
        return dataclasses.replace(self, tokenizer=settings)


def read_vocabulary(path: str, do_lower_case: bool | None = None) -> Vocabulary:
    """Reads and checks a vocabulary, local or gs://, and the tokenizer's files in its folder.

    Args:
      path: a text file with one word piece a line, or a `tokenizer.json`.
      do_lower_case: whether text is lower-cased; None infers it from the files.

    Raises:
      InputError: when the file is missing, not a BERT vocabulary, of another tokenizer, or
        contradicts `do_lower_case`.
    """
    files = read_tokenizer_files(os.path.dirname(path))
    is_json = os.path.basename(path) == TOKENIZER
    in_json = None if files.pieces is None else _in_order(files.tokenizer_path, files.pieces)
    pieces = in_json if is_json and in_json is not None else _read_lines(path)
    if in_json not in (None, pieces):
        logging.warning("%s differs from %s and is used.", path, files.tokenizer_path)
    pieces = _with_added(path, pieces, files)
    _check(path, pieces, files.special)
    lower_case = _lower_case(path, pieces, files, do_lower_case)
    strip_accents = lower_case if files.strip_accents is None else files.strip_accents
    settings = TokenizerSettings(
        lower_case,
        strip_accents,
        files.split_chinese is not False,
        files.special,
        files.longest_word,
        _never_split(pieces, files),
        files.longest_text,
    )
    is_inferred = files.lower_case is None and do_lower_case is None
    return Vocabulary(path, pieces, settings, is_inferred)


def _read_lines(path: str) -> tuple[str, ...]:
    try:
        text = storage.read_bytes(path, LARGEST_FILE).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise NotFound(f"No vocabulary file at {path!r}.") from error
    except OSError as error:
        raise Unavailable(f"Cannot read {path!r}: {error}") from error
    except UnicodeDecodeError as error:
        raise Damaged(
            f"{path} is not a UTF-8 text file: {error}. Use the file that came with the checkpoint."
        ) from error
    # Lines of white space alone are pieces too: their ids count.
    return tuple(line.rstrip("\r") for line in text.removesuffix("\n").split("\n"))


def _in_order(path: str, ids: object) -> tuple[str, ...]:
    """The pieces of a tokenizer.json, which has an id for each."""
    if not isinstance(ids, dict) or not all(type(number) is int for number in ids.values()):
        raise Damaged(
            f"{path}: vocab must have an id for each word piece. Received: {preview(ids)}"
        )
    pieces = sorted(ids, key=lambda piece: ids[piece])
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise Damaged(f"{path}: the ids of vocab must be 0 to {len(pieces) - 1:,}, each once.")
    return tuple(pieces)


def _with_added(path: str, pieces: tuple[str, ...], files: TokenizerFiles) -> tuple[str, ...]:
    """The pieces and those that were added after the last one."""
    every = list(pieces)
    for token in files.added:
        if token.id == len(every):
            every.append(token.content)
        elif token.id > len(every) or every[token.id] != token.content:
            expected = repr(every[token.id]) if token.id < len(every) else f"id {len(every):,} next"
            raise Damaged(
                f"{path} and the added tokens do not match: {preview(token.content)} has the id "
                f"{token.id:,}. Expected: {expected}"
            )
    return tuple(every)


def _never_split(pieces: Sequence[str], files: TokenizerFiles) -> tuple[AddedToken, ...]:
    """The added tokens, and the word pieces that files without these ids declare as such."""
    named = {token.content for token in files.added} | {*dataclasses.astuple(files.special)}
    declared = [piece for piece in files.never_split if piece in pieces and piece not in named]
    tokens = [AddedToken(piece, pieces.index(piece), False) for piece in dict.fromkeys(declared)]
    return tuple(sorted((*files.added, *tokens), key=lambda token: token.id))


def _check(path: str, pieces: Sequence[str], special: SpecialTokens) -> None:
    needed = (special.pad, special.unknown, special.start, special.end)
    if missing := [token for token in needed if token not in pieces]:
        raise Damaged(f"{path} is not a BERT vocabulary: it has no {missing}.")
    lines: dict[str, int] = {}
    for number, piece in enumerate(pieces, start=1):
        if piece in lines:  # Its id would be ambiguous.
            raise Damaged(
                f"{path}: lines {lines[piece]} and {number} are the same word piece. Received: "
                f"{preview(piece)}. Use the file that came with the checkpoint."
            )
        if not _is_text(piece):
            raise Damaged(
                f"{path}: line {number} must be text of at most {LARGEST_PIECE} bytes. Received: "
                f"{preview(piece)}"
            )
        lines[piece] = number


def _is_text(piece: str) -> bool:
    """Whether tensorflow-text can hold a piece: no NUL, no half of a surrogate pair."""
    try:
        return len(piece.encode()) <= LARGEST_PIECE and "\0" not in piece
    except UnicodeEncodeError:
        return False


def _lower_case(
    path: str, pieces: Sequence[str], files: TokenizerFiles, do_lower_case: bool | None
) -> bool:
    """Whether text is lower-cased: as a file states, else as given, else as the pieces suggest.

    Raises `InputError` if `do_lower_case` contradicts a file.
    """
    stated = files.lower_case
    if stated is not None:
        if do_lower_case not in (None, stated):
            kind = "uncased" if stated else "cased"
            raise Conflict(
                f"do_lower_case={do_lower_case} contradicts {files.source}, which says that "
                f"{path} is {kind}. Leave it out, or use do_lower_case={stated}.",
                f"do_lower_case={do_lower_case}",
                f"do_lower_case={stated}",
            )
        return stated
    capitals, letters = _count_capitals(pieces, files)
    inferred = capitals <= CASED_SHARE * letters
    counts = f"{capitals:,} of {letters:,} word pieces with letters in {path} have capitals"
    if do_lower_case is not None and do_lower_case != inferred:
        logging.warning("do_lower_case=%s, although %s.", do_lower_case, counts)
    elif do_lower_case is None and capitals and inferred:
        logging.warning("%s: it is uncased, and texts are lower-cased.", counts)
    return inferred if do_lower_case is None else do_lower_case


def _count_capitals(pieces: Iterable[str], files: TokenizerFiles) -> tuple[int, int]:
    """How many pieces have capital letters, and how many have letters with case."""
    special = {*dataclasses.astuple(files.special), *(token.content for token in files.added)}
    words = [p for p in pieces if p not in special and not p.startswith("[")]
    return (
        sum(word != word.lower() for word in words),
        sum(word.lower() != word.upper() for word in words),
    )
