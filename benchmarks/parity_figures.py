"""Writes the outputs of `transformers` that the tests compare with.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.parity_figures

On the MiniLM weights and on sentences of the shipped data: `tests/golden/minilm.npz` (hidden states
and pooled output of `BertModel`) and `tests/golden/tokenization.json` (ids of `BertTokenizerFast`).
"""

import json
import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
PAIRS = 64
ODD_TEXTS = [
    "Zoë's façade café cost £3½ — naïve?",
    "´ alone ´ and `back` ticks",
    "ﬁne ﬂow",
    "tab\there, newline\nthere",
    "control\x12 and zero\u200bwidth and \ufffd",
    "東京 tower, 서울, ελληνικά, кириллица",
    "ＦＵＬＬ width",
    "non\u00a0breaking\u2003spaces",
    "e\u0301 composed later",
    "İstanbul and ß",
    "x² + y³ ≤ ∞ ™ © …",
    "don't won't O'Neill",
    "3.14 1,000 50% #tag @name",
    "😀 emoji 👍🏽",
    "supercalifragilisticexpialidocious",
    "",
    "   ",
    "a" * 150,
]


def pairs():
    """Sentence pairs of different lengths: shipped ones, some joined to longer texts."""
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.tasks import find_task

    task = find_task("demo_paraphrase")
    examples = read_examples(task, task.folder, ["train"])["train"]
    firsts = [" ".join(examples.text_a[i : i + 1 + i % 5]) for i in range(PAIRS)]
    seconds = [" ".join(examples.text_b[i : i + 1 + i % 3]) for i in range(PAIRS)]
    return firsts, seconds


def transformers_outputs(folder, firsts, seconds):
    """Hidden states `[pairs, seq, hidden]`, pooled output and inputs, as numpy arrays."""
    import torch
    import transformers

    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    encoded = tokenizer(firsts, seconds, padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**encoded)
    return {
        "input_word_ids": encoded["input_ids"].numpy().astype("i4"),
        "input_mask": encoded["attention_mask"].numpy().astype("i4"),
        "input_type_ids": encoded["token_type_ids"].numpy().astype("i4"),
        "sequence_output": output.last_hidden_state.numpy(),
        "pooled_output": output.pooler_output.numpy(),
    }


def main():
    """Writes both files."""
    import transformers

    firsts, seconds = pairs()
    from adapter_bert_tf.base import load_base

    folder = os.path.dirname(load_base().weights_path)
    figures = transformers_outputs(folder, firsts, seconds)
    # All hidden states are 10 MB: every fifth position is enough to detect a difference.
    figures["sequence_output"] = figures["sequence_output"][:, ::5].astype("f4")
    np.savez_compressed(GOLDEN / "minilm.npz", **figures)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    texts = ODD_TEXTS + firsts[:20]
    rows = [{"text": text, "ids": tokenizer(text)["input_ids"]} for text in texts]
    (GOLDEN / "tokenization.json").write_text(json.dumps(rows, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
