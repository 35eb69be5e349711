"""Reads the tokenizer settings of Hugging Face's files in the folder of a vocabulary."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.base.tokenizer_settings import GOOGLE, AddedToken, SpecialTokens
from adapter_bert_tf.errors import Damaged, Unsupported
from adapter_bert_tf.sanitize import preview

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
MODEL_CONFIG = "config.json"  # May name the tokenizer too.
SPECIAL = "special_tokens_map.json"
ADDED = "added_tokens.json"
NAMES = (TOKENIZER, CONFIG, SPECIAL, ADDED, MODEL_CONFIG)
LARGEST_FILE = 256 << 20
# Those that split text as BERT does. The last two are read from tokenizer.json.
CLASSES = {"Bert", "DistilBert", "Electra", "MobileBert", "PreTrained", "TokenizersBackend"}
# Settings of the classes that change pieces in a way that is not computed, and harmless values.
NOT_COMPUTED: Mapping[str, tuple[Any, ...]] = {
    "do_basic_tokenize": (True, None),
    "never_split": (None, []),
    "word_tokenizer_type": ("basic", None),
    "subword_tokenizer_type": ("wordpiece", None),
    "auto_map": (None, {}),
}
SPECIAL_NAMES = {
    "pad": "pad_token",
    "unknown": "unk_token",
    "start": "cls_token",
    "end": "sep_token",
    "mask": "mask_token",
}


@dataclasses.dataclass(frozen=True)
class TokenizerFiles:
    """What the files of a folder say of its tokenizer; None, or nothing, where they do not."""

    lower_case: bool | None = None
    strip_accents: bool | None = None
    split_chinese: bool | None = None
    special: SpecialTokens = GOOGLE
    longest_word: int = 100
    longest_text: int | None = None
    added: tuple[AddedToken, ...] = ()
    never_split: tuple[str, ...] = ()  # Word pieces that are treated as added tokens.
    pieces: Mapping[str, int] | None = None  # Of tokenizer.json.
    tokenizer_path: str = ""
    source: str = ""  # The file that states `lower_case`.


def read_tokenizer_files(folder: str) -> TokenizerFiles:
    """Reads the files. Raises `InputError` for a tokenizer that is not computed, by its name.

    As in transformers, `tokenizer_config.json` wins over `tokenizer.json`.
    """
    paths = {name: os.path.join(folder, name) for name in NAMES}
    found = {name: _read(path) for name, path in paths.items()}
    config, tokenizer = found[CONFIG], found[TOKENIZER]
    for name in (MODEL_CONFIG, CONFIG):
        _check_config(paths[name], found[name])
    model, normalizer = _model_and_normalizer(paths[TOKENIZER], tokenizer)
    special = _special_tokens(paths[CONFIG], found[SPECIAL] | config)
    never_split = _contents((found[SPECIAL] | config).get("additional_special_tokens"))
    switches = {
        "lower_case": _switch(paths, config, "do_lower_case", normalizer, "lowercase"),
        "strip_accents": _switch(paths, config, "strip_accents", normalizer, "strip_accents"),
        "split_chinese": _switch(
            paths, config, "tokenize_chinese_chars", normalizer, "handle_chinese_chars"
        ),
    }
    longest = config.get("model_max_length", config.get("max_len"))
    is_stated = isinstance(config.get("do_lower_case"), bool)
    return TokenizerFiles(
        **switches,
        special=special,
        longest_word=model.get("max_input_chars_per_word", 100),
        # transformers writes 1e30 for a length that is not known.
        longest_text=longest if type(longest) is int and 0 < longest < 1 << 20 else None,
        added=_added_tokens(paths, found, special, never_split),
        never_split=never_split,
        pieces=model.get("vocab"),
        tokenizer_path=paths[TOKENIZER],
        source=paths[CONFIG if is_stated else TOKENIZER],
    )


def _read(path: str) -> dict[str, Any]:
    return storage.read_json_object(path, LARGEST_FILE) if storage.exists(path) else {}


def _check_config(path: str, config: Mapping[str, Any]) -> None:
    name = config.get("tokenizer_class")
    if name is not None and str(name).removesuffix("Fast").removesuffix("Tokenizer") not in CLASSES:
        raise Unsupported(
            f"{path}: the tokenizer {preview(name)} is not supported. Use a base whose tokenizer "
            "is BertTokenizer."
        )
    for setting, harmless in NOT_COMPUTED.items():
        if config.get(setting) not in harmless:
            raise Unsupported(
                f"{path}: {setting} is not supported. Received: {preview(config[setting])}"
            )


def _model_and_normalizer(
    path: str, tokenizer: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of tokenizer.json. Raises `InputError` unless they are BERT's."""
    if not tokenizer:
        return {}, {}
    parts: dict[str, dict[str, Any]] = {}
    for name, kind in (
        ("model", "WordPiece"),
        ("normalizer", "BertNormalizer"),
        ("pre_tokenizer", "BertPreTokenizer"),
    ):
        part = tokenizer.get(name)
        # Files of the first versions do not name the type of the model.
        if not isinstance(part, dict) or part.get("type", kind) != kind:
            received = part.get("type") if isinstance(part, dict) else part
            raise Unsupported(f"{path}: the {name} must be {kind}. Received: {preview(received)}")
        parts[name] = part
    model, normalizer = parts["model"], parts["normalizer"]
    longest = model.get("max_input_chars_per_word", 100)
    if (
        model.get("continuing_subword_prefix", "##") != "##"
        or normalizer.get("clean_text", True) is not True
        or type(longest) is not int
        or not 0 < longest <= 10_000
    ):
        received = {name: value for name, value in (model | normalizer).items() if name != "vocab"}
        raise Unsupported(
            f"{path}: continuing_subword_prefix must be '##', clean_text true and "
            f"max_input_chars_per_word from 1 to 10000. Received: {preview(received)}"
        )
    return model, normalizer


def _switch(
    paths: Mapping[str, str],
    config: Mapping[str, Any],
    name: str,
    normalizer: Mapping[str, Any],
    other_name: str,
) -> bool | None:
    """The value of a setting in the files. Raises `InputError` unless it is true, false, null."""
    sources = ((paths[CONFIG], config, name), (paths[TOKENIZER], normalizer, other_name))
    for path, values, key in sources:
        value = values.get(key)
        if isinstance(value, bool):
            return value
        if value is not None:
            raise Damaged(f"{path}: {key} must be true, false or null. Received: {preview(value)}")
    return None


def _special_tokens(path: str, values: Mapping[str, Any]) -> SpecialTokens:
    names = {}
    for role, key in SPECIAL_NAMES.items():
        value = values.get(key)
        value = value.get("content") if isinstance(value, dict) else value
        if value is None:
            continue
        if not isinstance(value, str) or not value:
            raise Damaged(f"{path}: {key} must be a text. Received: {preview(value)}")
        names[role] = value
    return SpecialTokens(**names)


def _contents(tokens: Any) -> tuple[str, ...]:
    """The texts of a list of special tokens, each a text or an object with one."""
    rows = tokens if isinstance(tokens, list) else []
    contents = [row.get("content") if isinstance(row, dict) else row for row in rows]
    return tuple(content for content in contents if isinstance(content, str) and content.strip())


def _added_tokens(
    paths: Mapping[str, str],
    found: Mapping[str, Mapping[str, Any]],
    special: SpecialTokens,
    never_split: tuple[str, ...],
) -> tuple[AddedToken, ...]:
    """The added tokens of the first file that has any, in the order of their ids."""
    by_id = found[CONFIG].get("added_tokens_decoder")
    if by_id:
        path, rows = paths[CONFIG], _rows(paths[CONFIG], by_id)
    elif found[TOKENIZER].get("added_tokens"):
        path, rows = paths[TOKENIZER], found[TOKENIZER]["added_tokens"]
    else:
        path = paths[ADDED]
        rows = [
            {"content": content, "id": i, "normalized": content not in never_split}
            for content, i in found[ADDED].items()
        ]
    if not isinstance(rows, list):
        raise Damaged(f"{path}: added_tokens must be a list. Received: {preview(rows)}")
    tokens = [_added_token(path, row) for row in rows]
    roles = dataclasses.astuple(special)
    return tuple(sorted((t for t in tokens if t.content not in roles), key=lambda t: t.id))


def _rows(path: str, by_id: Any) -> list[Any]:
    if not isinstance(by_id, dict) or not all(
        key.isdecimal() and isinstance(row, dict) for key, row in by_id.items()
    ):
        raise Damaged(f"{path}: added_tokens_decoder must name ids. Received: {preview(by_id)}")
    return [row | {"id": int(key)} for key, row in by_id.items()]


def _added_token(path: str, row: Any) -> AddedToken:
    content, number = (row.get("content"), row.get("id")) if isinstance(row, dict) else (None, None)
    if not isinstance(content, str) or not content.strip() or type(number) is not int or number < 0:
        raise Damaged(f"{path}: an added token needs content and id. Received: {preview(row)}")
    if row.get("single_word"):
        raise Unsupported(
            f"{path}: single_word of an added token is not supported. Received: {preview(row)}"
        )
    return AddedToken(content, number, row.get("normalized", True) is True)
