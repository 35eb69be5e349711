"""Splits texts into the words of BERT's basic tokenizer, in graph ops."""

import tensorflow as tf
import tensorflow_text as text

from adapter_bert_tf.base.tokenizer_settings import TokenizerSettings

SPACE = r"\p{Z}\t\n\r"
PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
# Google's ranges of ideographs.
CHINESE = (
    r"\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}"
    r"\x{20000}-\x{2A6DF}\x{2A700}-\x{2CEAF}\x{2F800}-\x{2FA1F}"
)
# Controls, format and private characters other than space, and the replacement character.
CONTROL = r"[^\P{C}\t\n\r]|\x{FFFD}"
# tf.strings.lower follows the locale of the process: a Turkish one maps I to a dotless i, and a
# Lithuanian one adds dots. It also maps a final sigma to another letter, which BERT does not.
SAME_IN_EVERY_LOCALE = {
    "Σ": "σ",
    "İ": "i\u0307",
    "Į": "į",
    "Ì": "ì",
    "Í": "í",
    "Ĩ": "ĩ",
}


def normalize(texts: tf.Tensor, settings: TokenizerSettings) -> tf.Tensor:
    """Removes controls and, as the settings say, accents and case.

    Nothing depends on the characters around one, except the order of combining marks.
    """
    texts = tf.strings.regex_replace(texts, CONTROL, "")
    if settings.strip_accents:
        texts = text.normalize_utf8(texts, "NFD")
        texts = tf.strings.regex_replace(texts, r"\p{Mn}", "")
    return _lower(texts, settings.strip_accents) if settings.lower_case else texts


def without_nul(texts: tf.Tensor) -> tf.Tensor:
    """Replaces NUL, in raw texts, by another control character, of the same length.

    `regex_split_with_offsets` of tensorflow_text 2.20 takes a NUL for the end of a text.
    """
    return tf.strings.regex_replace(texts, r"\x00", "\x01")


def split_words(
    texts: tf.Tensor, settings: TokenizerSettings, whole: str = ""
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Splits normalized texts at space and around punctuation and, by default, ideographs.

    Args:
      texts: string `[batch]`.
      settings: `TokenizerSettings`.
      whole: regular expression of texts that are words wherever they occur, or empty.

    Returns:
      three ragged `[batch, (words)]`: strings, and int64 starts and ends in bytes.
    """
    single = f"[{PUNCTUATION}{CHINESE if settings.split_chinese else ''}]"
    kept = f"{whole}|{single}" if whole else single
    words: tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor] = text.regex_split_with_offsets(
        texts, f"{kept}|[{SPACE}]+", kept
    )
    return words


def _lower(texts: tf.Tensor, has_no_accents: bool) -> tf.Tensor:
    texts = tf.strings.lower(texts)  # ASCII alone, without a locale.
    for upper, lower in SAME_IN_EVERY_LOCALE.items():
        if upper == "Σ" or not has_no_accents:
            texts = tf.strings.regex_replace(texts, upper, lower)
    return tf.strings.lower(texts, encoding="utf-8")
