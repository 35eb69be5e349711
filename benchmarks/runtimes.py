"""One pair at a time: by this package, by other runtimes of its exports, by PyTorch's `adapters`.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.runtimes --data_dir=FOLDER  # what is missing
    python -m benchmarks.runtimes --table                             # only the table

FOLDER holds `glue/MRPC`. The pairs of its dev set are answered from raw text to probabilities, by
MiniLM with adapters of size 64 and random weights. Each measurement has its own process, with all
cores, and all take turns. A system is ready when it has answered a pair; this and its memory
include the imports.
"""

import itertools
import json
import os
import pathlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks import ledger, measuring, runner

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "runtimes",
    page=runner.ROOT / "docs" / "other_runtimes.md",
    key=lambda row: (row["system"], row["turn"]),
)
Answer = Callable[[str, str], Any]
SIZE, LENGTH = 64, 128
WARMUP, COUNTED = 100, 300
PACKAGES = (*measuring.PACKAGES, *measuring.PEER_PACKAGES, "onnxruntime", "ai-edge-litert")


def prepare(data_dir: str, folder: str) -> None:
    """Writes the pairs, an adapter and its exports to a folder."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.interop.portable_models import FORMATS, export_model
    from adapter_bert_tf.serving.export import export_task
    from adapter_bert_tf.store import load_adapter
    from benchmarks import predicting

    pairs = predicting.dev_set("mrpc", os.path.join(data_dir, "glue", "MRPC")).texts()
    (pathlib.Path(folder) / "pairs.json").write_text(json.dumps([list(pair) for pair in pairs]))
    base = abt.load_base()
    model = abt.AdapterModel(base)
    inputs = {"texts": 2, "max_seq_length": LENGTH}
    trained = model.add_adapter("task", ("0", "1"), abt.AdapterConfig(SIZE), **inputs)
    model.save_adapter("task", f"{folder}/adapter")
    export_task(f"{folder}/saved_model", trained, model.config("task"), base.vocabulary)
    for name in FORMATS:
        export_model(load_adapter(f"{folder}/adapter"), f"{folder}/{name}", base, name)


def measure(system: str, folder: str, data_dir: str = "") -> dict[str, float]:
    """Measures one system, in its own process; with `data_dir` it only prepares the folder."""
    if data_dir:
        prepare(data_dir, folder)
        return {}
    pairs = json.loads((pathlib.Path(folder) / "pairs.json").read_text())
    start = time.perf_counter()
    answer = SYSTEMS[system](folder)
    answer(*pairs[0])
    ready = time.perf_counter() - start
    texts = itertools.cycle(pairs)
    times = measuring.time_calls(lambda: answer(*next(texts)), WARMUP, COUNTED)
    return {
        "milliseconds": statistics.median(times),
        "ready": ready,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _peer(folder: str) -> Answer:
    from benchmarks import peer

    return peer.pair_answerer(SIZE)


def _saved_model(folder: str) -> Answer:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  # Its operations.

    served = tf.saved_model.load(f"{folder}/saved_model").signatures["serving_default"]

    def answer(first: str, second: str) -> Any:
        answered = served(text_a=tf.constant([first]), text_b=tf.constant([second]))
        return answered["probabilities"].numpy()

    return answer


def _predictor(folder: str) -> Answer:
    import adapter_bert_tf as abt

    return abt.Predictor(f"{folder}/adapter")


def _onnx(folder: str, is_padded: bool = False) -> Answer:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count() or 1
    session = onnxruntime.InferenceSession(f"{folder}/onnx/model.onnx", options)
    encode = _encoder(f"{folder}/onnx", is_padded)
    return lambda first, second: session.run(["probabilities"], encode(first, second))


def _padded_onnx(folder: str) -> Answer:
    return _onnx(folder, is_padded=True)


def _litert(folder: str) -> Answer:
    from ai_edge_litert.interpreter import Interpreter

    path = f"{folder}/litert/model.tflite"
    interpreter = Interpreter(model_path=path, num_threads=os.cpu_count())
    runner = interpreter.get_signature_runner("serving_default")
    encode = _encoder(f"{folder}/litert", is_padded=True)
    return lambda first, second: runner(**encode(first, second))["probabilities"]


def _encoder(folder: str, is_padded: bool) -> Callable[[str, str], dict[str, Any]]:
    """A function from a pair to the inputs of an export, as docs/other_runtimes.md computes it."""
    import numpy as np
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(f"{folder}/vocab.txt")
    tokenizer.enable_truncation(LENGTH)
    if is_padded:
        tokenizer.enable_padding(length=LENGTH)

    def encode(first: str, second: str) -> dict[str, Any]:
        row = tokenizer.encode(first, second)
        values = (row.ids, row.attention_mask, row.type_ids)
        names = ("input_word_ids", "input_mask", "input_type_ids")
        return {name: np.array([v], np.int32) for name, v in zip(names, values, strict=True)}

    return encode


SYSTEMS: dict[str, Callable[[str], Answer]] = {
    "PyTorch's `adapters`": _peer,
    "`Predictor`": _predictor,
    "SavedModel": _saved_model,
    "onnxruntime": _onnx,
    "onnxruntime, padded to 128": _padded_onnx,
    "LiteRT, padded to 128": _litert,
}


def run_missing(data_dir: str, turns: int) -> None:
    """Measures the missing cases, in turns, with the kernels that commands choose."""
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
    missing = LEDGER.missing([(system, turn) for turn in range(turns) for system in SYSTEMS])
    if not missing:
        return
    with tempfile.TemporaryDirectory() as folder:
        # This process stays small: its memory would count as that of the others.
        measuring.run_in_process("benchmarks.runtimes", "", folder, data_dir)
        for system, turn in missing:
            found = measuring.run_in_process("benchmarks.runtimes", system, folder)
            row = {"system": system, "turn": turn} | found
            print(row, flush=True)
            LEDGER.add("rows", [row | measuring.describe_machine(PACKAGES)])


def runtimes(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines with the median and the range of each measure."""
    lines = [
        "| system | a pair, ms | ready after, s | most memory, MB |",
        "| --- | --- | --- | --- |",
    ]
    for system in SYSTEMS:
        rows = [row for row in rows_by_key.values() if row["system"] == system]
        if rows:
            names = (("milliseconds", ".1f"), ("ready", ".1f"), ("megabytes", ",.0f"))
            cells = [_range([row[name] for row in rows], form) for name, form in names]
            lines.append(f"| {system} | {' | '.join(cells)} |")
    return lines


def _range(values: list[float], form: str) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):{form}} ({low:{form}}-{high:{form}})"


def write_tables() -> None:
    """Rewrites the table in docs/other_runtimes.md."""
    LEDGER.write_tables(runtimes)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of the data sets."),
        turns=(3, "How often each system is measured."),
    )
