"""Tagging with the PyTorch library `adapters`, for comparisons: its adapter and its tagging head.

Words become pieces as in the library's examples: the first piece of a word has its tag, the others
-100, which its loss ignores. Words that a sentence has after its first 126 pieces are tagged `O`.
Optimizer, schedule and clipping are those of `benchmarks.peer`.
"""

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import peer

OUTSIDE = "O"
IGNORED = -100
Words = Sequence[str]
Tags = Sequence[str]


def load(size: int, labels: Sequence[str], seed: int) -> tuple[Any, Any]:
    """Loads a tagger of `adapters` on the default base, and the base's tokenizer.

    Args:
      size: bottleneck size of its Houlsby-type adapter.
      labels: its tags, in the order of their ids.
      seed: seed of initialization, dropout and the order of the sentences.
    """
    import adapters
    import torch
    import transformers

    from adapter_bert_tf.base import load_base

    torch.manual_seed(seed)
    folder = os.path.dirname(load_base().weights_path or "")
    model = adapters.BertAdapterModel.from_pretrained(folder)
    reduction_factor = model.config.hidden_size / size
    model.add_adapter("task", config=adapters.DoubleSeqBnConfig(reduction_factor=reduction_factor))
    model.add_tagging_head("task", num_labels=len(labels), id2label=dict(enumerate(labels)))
    model.train_adapter("task")
    return model, transformers.BertTokenizerFast.from_pretrained(folder)


def rows(
    tokenizer: Any, sentences: Sequence[Words], tags: Sequence[Tags], labels: Sequence[str]
) -> list[dict[str, Any]]:
    """Converts sentences to word pieces, with the id of a word's tag at its first piece."""
    ids = {label: number for number, label in enumerate(labels)}
    encoded = tokenizer(
        [list(words) for words in sentences],
        is_split_into_words=True,
        truncation=True,
        max_length=peer.MAX_SEQ_LENGTH,
    )
    results = []
    for number, sentence_tags in enumerate(tags):
        counted = [IGNORED] * len(encoded["input_ids"][number])
        for position, word in first_pieces(encoded.word_ids(number)):
            counted[position] = ids[sentence_tags[word]]
        row = {name: encoded[name][number] for name in encoded}
        results.append(row | {"labels": counted})
    return results


def first_pieces(words: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Yields (position, word) of the first piece of each word.

    Args:
      words: the word of each piece; None for [CLS], [SEP] and padding.
    """
    last = None
    for position, word in enumerate(words):
        if word is not None and word != last:
            yield position, word
        last = word


def train(
    model: Any, tokenizer: Any, rows: Sequence[Any], batch: int, steps: int, rate: float
) -> float:
    """Trains, and returns the seconds of processor time."""
    start = time.process_time()
    for _ in iterate_steps(model, tokenizer, rows, batch, steps, rate):
        pass
    return time.process_time() - start


def iterate_steps(
    model: Any, tokenizer: Any, rows: Sequence[Any], batch: int, steps: int, rate: float
) -> Iterator[int]:
    """Trains, and yields after each step."""
    import transformers

    collate = transformers.DataCollatorForTokenClassification(tokenizer)
    dataset = peer.batches(tokenizer, rows, batch, shuffle=True, collate=collate)
    return peer.train(model, dataset, steps, rate)


def predict(
    model: Any, tokenizer: Any, sentences: Sequence[Words], labels: Sequence[str], batch: int
) -> Iterator[list[str]]:
    """Yields the most probable tag of each word of each sentence, in their order."""
    import torch

    model.eval()
    for first in range(0, len(sentences), batch):
        part = [list(words) for words in sentences[first : first + batch]]
        encoded = tokenizer(
            part,
            is_split_into_words=True,
            truncation=True,
            max_length=peer.MAX_SEQ_LENGTH,
            padding=True,
            return_tensors="pt",
        )
        with torch.no_grad():
            ids = model(**encoded).logits.argmax(-1).numpy()
        for number, words in enumerate(part):
            tags = [OUTSIDE] * len(words)
            for position, word in first_pieces(encoded.word_ids(number)):
                tags[word] = labels[int(ids[number, position])]
            yield tags


def tag_texts(
    model: Any, tokenizer: Any, texts: Sequence[str], labels: Sequence[str], batch: int
) -> Iterator[list[dict[str, Any]]]:
    """Yields the entities of raw texts, with offsets in characters and their lowest probability.

    The words are those of the library's tokenizer: white space and punctuation separate them.
    """
    import torch

    model.eval()
    for first in range(0, len(texts), batch):
        encoded = tokenizer(
            list(texts[first : first + batch]),
            truncation=True,
            max_length=peer.MAX_SEQ_LENGTH,
            padding=True,
            return_tensors="pt",
        )
        with torch.no_grad():
            values, ids = model(**encoded).logits.softmax(-1).max(-1)
        for number, text in enumerate(texts[first : first + batch]):
            words = [
                (labels[tag], value, encoded.word_to_chars(number, word))
                for (position, word) in first_pieces(encoded.word_ids(number))
                for tag, value in [(int(ids[number, position]), float(values[number, position]))]
            ]
            yield _entities(text, words)


def _entities(text: str, words: Sequence[tuple[str, float, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    last = OUTSIDE
    for tag, probability, place in words:
        if tag.startswith("I-") and last[2:] == tag[2:]:
            entity = found[-1]
            entity |= {"end": place.end, "text": text[entity["start"] : place.end]}
            entity["probability"] = min(entity["probability"], probability)
        elif tag != OUTSIDE:
            span = {"start": place.start, "end": place.end, "text": text[place.start : place.end]}
            found.append({"type": tag[2:], **span, "probability": probability})
        last = tag
    return found
