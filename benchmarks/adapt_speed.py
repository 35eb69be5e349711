"""How fast `adapter-bert adapt` trains on plain text, next to PyTorch's `adapters`.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.adapt_speed --data_dir=FOLDER  # what is missing
    python -m benchmarks.adapt_speed --table                             # only the table

FOLDER holds `glue/QNLI`, whose questions and sentences are the text, a line each. Both systems make
sequences of 128 word pieces from it, mask 15% of the pieces anew in each step, and train an adapter
of Pfeiffer's type with an invertible one and the head that predicts words, on MiniLM, in batches of
32; the base is frozen. `adapters` trains as its users do: with its own head, which scores all
positions and counts the masked ones, its fast tokenizer and the collator of `transformers`. Each
measurement has its own process on all cores, and the systems take turns.
"""

import itertools
import os
import pathlib
import statistics
import tempfile
from typing import Any

from benchmarks import ledger, measuring, runner

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "adapt_speed",
    page=runner.ROOT / "docs" / "performance.md",
    key=lambda row: (row["system"], row["turn"]),
)
PEER, OURS, OURS_BF16 = "`adapters`", "ours", "ours, `--precision=bfloat16_base`"
SYSTEMS = (PEER, OURS, OURS_BF16)
TURNS, BATCH, LENGTH, SIZE, SHARE, WARMUP = 3, 32, 128, 64, 0.15, 3
STEPS, PEER_STEPS = 18, 6  # They take similar times.
LEARNING_RATE = 1e-4


def measure(system: str, data_dir: str) -> dict[str, Any]:
    """Measures sequences/s of training and counts trained values, in its own process."""
    lines = read_lines(data_dir)
    if system == PEER:
        return _peer_training(lines)
    return _our_training(lines, "bfloat16" if system == OURS_BF16 else None)


def read_lines(data_dir: str) -> list[str]:
    """The texts of QNLI's files, each once, in their order."""
    files = sorted(pathlib.Path(data_dir, "glue", "QNLI").glob("*.tsv"))
    tables = (file.read_text(encoding="utf-8").splitlines()[1:] for file in files)
    rows = (line.split("\t") for line in itertools.chain.from_iterable(tables))
    return list(dict.fromkeys(text for row in rows for text in row[1:3]))


def _our_training(lines: list[str], product_dtype: str | None) -> dict[str, Any]:
    import numpy as np

    import adapter_bert_tf as abt
    from adapter_bert_tf.data.plain_text.batches import Sequences, train_batches
    from adapter_bert_tf.data.plain_text.masking import masking_of
    from adapter_bert_tf.heads.masked_words.model import MaskedWordModel

    base = abt.load_base()
    config = abt.PRESETS["pfeiffer+inv"].adjusted(size=SIZE)
    model = MaskedWordModel(base.new_encoder(config, product_dtype=product_dtype))
    base.assign(model.named_variables())
    trained = abt.select_trained(model, abt.Tuning(train_layer_norm=False))
    encoder = abt.TextEncoder(base.vocabulary, LENGTH)
    masking = masking_of(base.vocabulary, encoder.mask_id(), SHARE, False)
    with tempfile.TemporaryDirectory() as folder:
        sequences = Sequences(_packed(lines, folder, encoder), np.zeros(0, np.int64))
        dataset = train_batches(sequences, masking, BATCH, WARMUP + STEPS, 0)
        rate = measuring.dataset_rate(model, dataset, BATCH, WARMUP, STEPS, LEARNING_RATE)
    return {
        "sequences_per_second": rate,
        "trained": sum(v.shape.num_elements() for v in trained.values()),
    }


def _packed(lines: list[str], folder: str, encoder: Any) -> Any:
    """The file of sequences, made from a file of text as the command makes it."""
    from adapter_bert_tf.data.plain_text.files import read_texts
    from adapter_bert_tf.data.plain_text.packed_file import cached_sequences
    from adapter_bert_tf.data.plain_text.packing import pack

    path = pathlib.Path(folder, "text.txt")
    path.write_text("\n".join(lines), encoding="utf-8")
    texts = read_texts([str(path)])
    words = len(encoder.pieces)
    return cached_sequences(folder, {}, words, LENGTH, lambda counts: pack(texts, encoder, counts))


def _peer_training(lines: list[str]) -> dict[str, Any]:
    import torch
    import transformers

    from benchmarks import peer

    torch.set_num_threads(os.cpu_count() or 1)
    model, tokenizer = _load_peer()
    rows = peer_sequences(tokenizer, lines)
    collate = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=SHARE)
    dataset = peer.batches(tokenizer, rows, BATCH, shuffle=True, collate=collate)
    iterator = peer.train(model, dataset, WARMUP + PEER_STEPS, LEARNING_RATE)
    rate = measuring.step_rate(iterator, BATCH, WARMUP, PEER_STEPS)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return {"sequences_per_second": rate, "trained": trained}


def _load_peer() -> tuple[Any, Any]:
    import adapters
    import torch
    import transformers

    from adapter_bert_tf.base import load_base

    torch.manual_seed(0)
    folder = os.path.dirname(load_base().weights_path or "")
    model = adapters.BertAdapterModel.from_pretrained(folder)
    config = adapters.SeqBnInvConfig(reduction_factor=model.config.hidden_size / SIZE)
    model.add_adapter("text", config=config)
    model.add_masked_lm_head("text")
    model.train_adapter("text")
    return model, transformers.BertTokenizerFast.from_pretrained(folder)


def peer_sequences(tokenizer: Any, lines: list[str]) -> list[dict[str, list[int]]]:
    """Joined texts cut into full sequences, as `run_mlm.py` of `transformers` does."""
    encoded = tokenizer(lines, return_special_tokens_mask=True)
    joined = {name: list(itertools.chain.from_iterable(encoded[name])) for name in encoded}
    ends = range(LENGTH, len(joined["input_ids"]) + 1, LENGTH)
    return [{name: values[end - LENGTH : end] for name, values in joined.items()} for end in ends]


def cases(turns: int) -> list[tuple[str, int]]:
    """Systems in turns; bfloat16 only where commands choose it."""
    systems = SYSTEMS if measuring.product_dtype() else (PEER, OURS)
    return [(system, turn) for turn in range(turns) for system in systems]


def run_missing(data_dir: str, turns: int) -> None:
    """Measures the missing cases, in turns, with the kernels that commands choose."""
    from adapter_bert_tf.training.device.kernels import choose_kernels, kernels

    choose_kernels()
    about = measuring.describe_machine() | {"kernels": kernels(), "cores": os.cpu_count()}
    missing = LEDGER.missing(cases(turns))
    for number, (system, turn) in enumerate(missing, 1):
        row = {"system": system, "turn": turn}
        row |= measuring.run_in_process("benchmarks.adapt_speed", system, data_dir)
        print(f"{number} of {len(missing)}: {row}", flush=True)
        LEDGER.add("rows", [row | about])


def adapt_speed(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: median and range of the turns, relative to `adapters`."""
    lines = ["| system | sequences/s | word pieces/s | times as fast |", "| --- |" + " --- |" * 3]
    rates: dict[str, list[float]] = {}
    for row in rows_by_key.values():
        rates.setdefault(row["system"], []).append(row["sequences_per_second"])
    for system in filter(rates.get, SYSTEMS):
        values, middle = rates[system], statistics.median(rates[system])
        ratio = f"{middle / statistics.median(rates[PEER]):.2f}" if PEER in rates else ""
        cells = [system, measuring.spread(values), f"{middle * LENGTH:,.0f}", ratio]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def write_tables() -> None:
    """Rewrites the table in docs/performance.md."""
    LEDGER.write_tables(adapt_speed)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of the data."),
        turns=(TURNS, "Number of measurements of each case."),
    )
