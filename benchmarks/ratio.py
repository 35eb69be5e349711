"""How fast this project and PyTorch's `adapters` are on this machine, side by side, in ten minutes.

    make bench DATA=FOLDER
    .venv-parity/bin/python -m benchmarks.ratio --data_dir=FOLDER

FOLDER holds `glue/MRPC`, `glue/CoLA` and `tagging/wnut17`. Each measurement has its own process;
both systems take turns. Training and scoring include the input pipeline; ours trains in the
precision that commands choose for the processor, `adapters` in its default, float32. Prints a line
for each row, then the table, and adds the row of each turn to
`benchmarks/results/ratio/rows.jsonl`. `--isa=AVX2` measures both as on a processor without AVX-512
(with libraries that heed it).
"""

import itertools
import json
import os
import pathlib
import statistics
import time

from benchmarks import ledger, measuring, runner

ROWS = ledger.RESULTS / "ratio" / "rows.jsonl"
OURS, PEER = "ours", "adapters"
# What is measured, its unit, and whether more is better.
MEASURES = {
    "MRPC": ("training, examples/s", True),
    "CoLA": ("training, examples/s", True),
    "WNUT": ("tagging, training, sentences/s", True),
    "step": ("MiniLM, 32 x 56, training, examples/s", True),
    "latency": ("a pair from raw text, ms", False),
    "scoring": ("raw pairs, rows/s", True),
    "tagging": ("raw texts to entities, sentences/s", True),
    "start": ("from the command to MRPC's first step, s", False),
    "predict": ("`predict` of one text, s", False),
}
ONLY_OURS = ("start", "predict")
STEPS, TIMES = {"mrpc": 20, "cola": 24}, 2
WARMUP, COUNTED = 5, 15  # Steps of equal shapes.
ISA = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
}


def measure(what: str, system: str, data_dir: str) -> dict[str, float]:
    """Measures one system; runs in its own process."""
    from benchmarks import costs, predicting, speed, tagging_speed

    folder = str(pathlib.Path(data_dir) / "glue")
    is_ours = system == OURS
    if what in ("MRPC", "CoLA"):
        speed.STEPS.update(STEPS)
        ours = speed.OURS_BF16 if measuring.product_dtype() else speed.OURS
        name = ours if is_ours else speed.PEER
        row = speed.measure(what.lower(), name, f"{folder}/{what}")
        return {"value": row["examples_per_second"]}
    if what in ("WNUT", "tagging"):
        rate = tagging_speed.training_rate if what == "WNUT" else tagging_speed.tagging_rate
        return {"value": rate(is_ours, data_dir)}
    if what == "step":
        return {"value": costs.BATCH / (_our_step(56) if is_ours else _peer_step(56))}
    if what == "latency":
        pairs = predicting.dev_set("mrpc", f"{folder}/MRPC").texts()
        value = (costs._latency if is_ours else costs._latency_of_peer)(pairs)
        return {"value": value}
    if what == "scoring":
        predicting.TIMES = TIMES
        run = predicting.measure_ours if is_ours else predicting.measure_peer
        return {"value": run(f"{folder}/MRPC")["rows_per_second"]}
    if what == "start":
        return {"value": costs._start(f"{folder}/MRPC")}
    return {"value": _predict()}


def _our_step(length: int) -> float:
    """The median seconds of a training step."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.training import loop
    from benchmarks import costs

    base = load_base()
    config = abt.AdapterConfig(costs.SIZE)
    encoder = base.new_encoder(config, product_dtype=measuring.product_dtype())
    model = abt.Classifier(encoder, 2)
    base.assign(model.named_variables())
    abt.select_trained(model, abt.Tuning("adapters"))
    loop.compile_model(model, loop.TrainingSettings(1000, costs.BATCH, 1e-3))
    batches = iter(costs._batches(base.config.vocab_size, length, 1000))
    step = model.make_train_function()
    return statistics.median(measuring.time_calls(lambda: step(batches), WARMUP, COUNTED)) / 1000


def _peer_step(length: int) -> float:
    import torch

    from benchmarks import costs, peer

    torch.set_num_threads(os.cpu_count() or 1)
    model, _ = peer.load(costs.SIZE, 2)
    ids = torch.randint(1000, 30_000, (costs.BATCH, length))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids[:, 0] % 2}
    inputs["token_type_ids"] = torch.zeros_like(ids)

    def forever():
        while True:
            yield dict(inputs)

    times = [time.perf_counter()]
    steps = peer.train(model, forever(), WARMUP + COUNTED, 1e-3)
    times += [time.perf_counter() for _ in steps]
    counted = itertools.pairwise(times[WARMUP:])
    return statistics.median(after - before for before, after in counted)


def _predict() -> float:
    import subprocess
    import sys
    import tempfile

    import adapter_bert_tf as abt

    with tempfile.TemporaryDirectory() as folder:
        model = abt.AdapterModel(abt.load_base())
        model.add_adapter("task", ("0", "1"), abt.AdapterConfig(64))
        model.save_adapter("task", folder)
        command = ["-m", "adapter_bert_tf", "predict", f"--adapter_dir={folder}", "--text_a=A cat."]
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def table(rows: list[dict]) -> str:
    """Returns the table of the medians of all turns."""
    medians = {
        (what, system): statistics.median(values)
        for what in MEASURES
        for system in (OURS, PEER)
        if (values := [r["value"] for r in rows if (r["what"], r["system"]) == (what, system)])
    }
    lines = ["| | `adapters` | ours | times as fast |", "| --- | --- | --- | --- |"]
    for what, (unit, more_is_better) in MEASURES.items():
        ours, peer = medians.get((what, OURS)), medians.get((what, PEER))
        if ours is None:
            continue
        ratio = "" if peer is None else f"{(ours / peer) if more_is_better else (peer / ours):.2f}"
        shown = "" if peer is None else f"{peer:.1f}"
        lines.append(f"| {what}: {unit} | {shown} | {ours:.1f} | {ratio} |")
    return "\n".join(lines)


def run(data_dir: str, turns: int, isa: str, only: str) -> None:
    """Measures everything in turns, and prints the table."""
    if isa:
        os.environ.update(ISA)
    from adapter_bert_tf.training.device.kernels import choose_kernels, kernels, processor_flags

    flags = processor_flags()
    if isa:
        flags = frozenset(f for f in flags if not f.startswith(("avx512", "amx", "avx_vnni")))
    choose_kernels(flags=flags)
    about = measuring.describe_machine() | {"isa": isa or "all", "kernels": kernels(flags=flags)}
    about["precision"] = "bfloat16_base" if measuring.product_dtype() else "float32"
    print(
        f"{about['processor']}, {os.cpu_count()} cores, kernels: {about['kernels']}, "
        f"training in {about['precision']}",
        flush=True,
    )
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for turn in range(turns):
        for what in only.split(","):
            for system in (OURS,) if what in ONLY_OURS else (PEER, OURS):
                row = {"what": what, "system": system, "turn": turn}
                row |= measuring.run_in_process("benchmarks.ratio", what, system, data_dir)
                print(row, flush=True)
                rows.append(row)
                with ROWS.open("a") as file:
                    file.write(json.dumps(row | about) + "\n")
    print(table(rows))


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run,
        lambda: None,
        data_dir=(None, "Folder of all data."),
        turns=(1, "Number of measurements of each case."),
        isa=("", "AVX2: as on a processor without AVX-512."),
        only=(",".join(MEASURES), "What to measure, separated by commas."),
    )
