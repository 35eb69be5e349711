"""Text to word-piece ids, as TensorFlow operations: the same in training and in exported models."""

import tensorflow as tf
import tensorflow_text as text
from official.nlp.modeling import layers


class TextEncoder(tf.Module):
    """Tokenizes one or two texts and joins them as `[CLS] a [SEP] b [SEP]`, cut to a length.

    Agrees with `transformers.BertTokenizerFast` piece for piece: the text is normalized as there
    (Model Garden's own lower-casing applies NFKC, which changes `½` or a lone acute accent).

    Args:
      vocabulary: `Vocabulary`.
      max_seq_length: longest result in word pieces, special tokens included. Too long a pair is
        cut at the longer text's end, as in adapter-bert.
    """

    def __init__(self, vocabulary, max_seq_length, name=None):
        super().__init__(name=name)
        self.lower_case = vocabulary.lower_case
        self.max_seq_length = max_seq_length
        # Case is ours (`_normalize`); the layer only splits.
        self.tokenizer = layers.FastWordpieceBertTokenizer(
            vocab_file=vocabulary.path, lower_case=False)
        self.unknown_id = vocabulary.pieces.index("[UNK]")
        self.special = self.tokenizer.get_special_tokens_dict()

    def __call__(self, *texts):
        """Encodes a batch.

        Args:
          *texts: one or two string tensors `[batch]`.

        Returns:
          int32 ragged `[batch, (pieces)]`: word ids and type ids.
        """
        return self.join(self.segments(*texts))

    def segments(self, *texts):
        """Word-piece ids of each text by itself, uncut: ragged `[batch, (pieces)]` each."""
        return [self.tokenizer(self._normalize(t)).merge_dims(1, 2) for t in texts]

    def join(self, segments):
        """Cuts and joins `segments`; returns what calling the encoder returns."""
        room = self.max_seq_length - len(segments) - 1
        ids, types = text.combine_segments(
            text.RoundRobinTrimmer(room).trim(segments),
            start_of_sequence_id=self.special["start_of_sequence_id"],
            end_of_segment_id=self.special["end_of_segment_id"],
        )
        return tf.cast(ids, tf.int32), tf.cast(types, tf.int32)

    def _normalize(self, texts):
        texts = tf.strings.regex_replace(texts, r"[\p{Zs}\t\n\r]", " ")
        texts = tf.strings.regex_replace(texts, r"[\p{C}\x{fffd}]", "")
        if not self.lower_case:
            return texts
        texts = text.normalize_utf8(texts, "NFD")
        return tf.strings.lower(tf.strings.regex_replace(texts, r"\p{Mn}", ""), encoding="utf-8")

    def unknown_share(self, ids):
        """Share of [UNK] among the word pieces of a ragged batch, from 0 to 1."""
        return float(tf.reduce_mean(tf.cast(ids.flat_values == self.unknown_id, tf.float32)))
