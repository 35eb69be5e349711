"""Training and prediction with the PyTorch library `adapters`, for comparisons.

Adapters, their initialization and the head of two layers are those of the library. Base, examples,
batch size, steps, schedule and clipping are those of this project. Each batch is padded to its
longest example.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.data.examples import Examples

MAX_SEQ_LENGTH = 128


def load(size: int, num_labels: int, questions: bool = False, seed: int = 0) -> tuple[Any, Any]:
    """Loads a model of `adapters` on the default base, and the base's tokenizer.

    Args:
      size: bottleneck size of its Houlsby-type adapter.
      num_labels: number of labels of its classification head.
      questions: whether to use a head for question answering instead.
      seed: seed of initialization and dropout.
    """
    import adapters
    import torch
    import transformers

    from adapter_bert_tf.base import load_base

    torch.manual_seed(seed)
    folder = os.path.dirname(load_base().weights_path or "")
    model = adapters.BertAdapterModel.from_pretrained(folder)
    config = adapters.DoubleSeqBnConfig(reduction_factor=model.config.hidden_size / size)
    model.add_adapter("task", config=config)
    if questions:
        model.add_qa_head("task")
    else:
        model.add_classification_head("task", num_labels=num_labels)
    model.train_adapter("task")
    return model, transformers.BertTokenizerFast.from_pretrained(folder)


def pair_answerer(size: int) -> Callable[[str, str], np.ndarray]:
    """A function from a pair of raw texts to the probabilities of two labels, on all cores."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    model, tokenizer = load(size, 2)
    model.eval()

    def answer(first: str, second: str) -> np.ndarray:
        inputs = tokenizer(
            first, second, return_tensors="pt", truncation=True, max_length=MAX_SEQ_LENGTH
        )
        with torch.inference_mode():
            probabilities: np.ndarray = model(**inputs).logits.softmax(-1).numpy()
        return probabilities

    return answer


def load_lora(num_labels: int, seed: int = 0) -> tuple[Any, Any]:
    """Loads the same with `peft`'s LoRA instead of adapters: rank 8, queries and values."""
    import peft
    import torch
    import transformers

    from adapter_bert_tf.base import load_base

    torch.manual_seed(seed)
    folder = os.path.dirname(load_base().weights_path or "")
    model = transformers.BertForSequenceClassification.from_pretrained(
        folder, num_labels=num_labels
    )
    config = peft.LoraConfig(task_type="SEQ_CLS", r=8, target_modules=["query", "value"])
    return peft.get_peft_model(model, config), transformers.BertTokenizerFast.from_pretrained(
        folder
    )


def window_row(window: Any) -> dict[str, Any]:
    """Converts a `Window` to a row of the library, with the same word pieces."""
    length, begin = len(window.ids), int(window.context_begin)
    return {
        "input_ids": [int(piece) for piece in window.ids],
        "token_type_ids": [0] * begin + [1] * (length - begin),
        "attention_mask": [1] * length,
        "start_positions": int(window.labels[0]),
        "end_positions": int(window.labels[1]),
    }


def tokenize(tokenizer: Any, examples: Examples, labels: Sequence[int]) -> list[dict[str, Any]]:
    """Tokenizes examples to rows of word pieces and labels."""
    texts = [examples.text_a] if examples.text_b is None else [examples.text_a, examples.text_b]
    encoded = tokenizer(*texts, truncation=True, max_length=MAX_SEQ_LENGTH)
    return [
        {name: encoded[name][i] for name in encoded} | {"labels": int(label)}
        for i, label in enumerate(labels)
    ]


def batches(
    tokenizer: Any, rows: Sequence[Any], size: int, shuffle: bool, collate: Any = None
) -> Iterator[Any]:
    """Yields batches of rows: once in order, or endlessly in random order and of full size.

    `collate` pads the rows of a batch; None for those whose labels are numbers.
    """
    import torch
    import transformers

    def orders() -> Iterator[int]:
        while True:
            yield from torch.randperm(len(rows)).tolist()

    collate = collate or transformers.DataCollatorWithPadding(tokenizer)
    order = orders() if shuffle else iter(range(len(rows)))
    while True:
        chosen = [rows[i] for _, i in zip(range(size), order, strict=False)]
        if not chosen:
            return
        yield collate(chosen)


def train(
    model: Any, dataset: Iterator[Any], steps: int, rate: float, autocast: bool = False
) -> Iterator[int]:
    """Trains with AdamW, warmup over a tenth of the steps, then decay to zero; yields each step.

    Args:
      model: result of `load`.
      dataset: batches.
      steps: number of steps.
      rate: the peak learning rate.
      autocast: whether to use torch's automatic bfloat16.
    """
    import torch
    import transformers

    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    model.train()
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = model(**next(dataset)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        yield step


def probabilities(model: Any, dataset: Iterator[Any]) -> np.ndarray:
    """Computes probabilities `[examples, labels]` of all batches."""
    import torch

    model.eval()
    with torch.no_grad():
        results = [model(**batch).logits.softmax(-1).numpy() for batch in dataset]
    return np.concatenate(results)


def version() -> str:
    """Returns the version of the library."""
    import importlib.metadata

    return importlib.metadata.version("adapters")
