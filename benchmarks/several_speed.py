"""Training speed of batches of 8 tasks, relative to one adapter for one task.

    python -m benchmarks.several_speed --data_dir=GLUE/MRPC      # measures what is missing
    python -m benchmarks.several_speed --table                   # only rewrites its page

Houlsby adapters of size 64, and HyperFormers with adapters of size 12, on MiniLM, batch 32, at most
128 word pieces, float32, input pipeline included; the same batches of MRPC's examples, each example
assigned to a random task. Each measurement has its own process. They take turns, and the first
steps are not counted.
"""

import dataclasses
import pathlib

import numpy as np

from benchmarks import ledger, measuring, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "several_speed",
    page=ROOT / "docs" / "several_tasks.md",
    key=lambda row: (row["tasks"], row["method"], row["turn"]),
)
CASES = (
    (1, "adapters"),
    (8, "multitask_adapters"),
    (2, "per_task_adapters"),
    (8, "per_task_adapters"),
    (30, "per_task_adapters"),
)
HYPER_CASES = (
    (1, "adapters 12"),
    (8, "hyperformer++"),
    (8, "hyperformer"),
    (8, "pals"),
    (30, "hyperformer++"),
)
TURNS, BATCH, LENGTH, WARMUP, STEPS = 3, 32, 128, 8, 40


def measure(data_dir, method, tasks):
    """Measures examples/s and MB of training; runs in a separate process."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.output.provenance import peak_memory_mb
    from adapter_bert_tf.tasks import find_task

    base = abt.load_base()
    examples = read_examples(find_task("mrpc"), data_dir, ["train"])["train"]
    features = measuring.features(examples, base, LENGTH)
    tasks, model = int(tasks), new_model(base, int(tasks), method)
    if not method.startswith("adapters"):
        ids = np.random.default_rng(0).integers(0, tasks, len(features)).astype("i4")
        columns = 2 * ids + features.labels.numpy()
        labels = np.stack([columns, np.zeros(len(ids))], -1).astype("f4")
        features = dataclasses.replace(features, task_ids=ids, labels=labels)
    rate = measuring.training_rate(model, features, BATCH, LENGTH, WARMUP, STEPS)
    return {"examples_per_second": rate, "peak_memory_mb": peak_memory_mb()}


def new_model(base, tasks, method):
    """Makes a model with its own base, as a run does."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.heads.mixed.classifier import HeadOf, MixedClassifier

    names = tuple(f"task{i}" for i in range(tasks))
    encoder = base.build_encoder(parts_of(method, names))
    if method.startswith("adapters"):
        model = abt.Classifier(encoder, 2)
    else:
        model = MixedClassifier(encoder, [HeadOf(name, 2) for name in names])
    abt.select_trained(model, abt.Tuning(method.split()[0]))
    return model


def parts_of(method, names):
    """Returns the configuration of a case."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
    from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
    from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig

    small = abt.AdapterConfig(12, normalize_output=True)
    return {
        "adapters": abt.PRESETS["houlsby"],
        "multitask_adapters": abt.PRESETS["houlsby"],
        "per_task_adapters": PerTaskConfig(abt.PRESETS["houlsby"], names),
        "adapters 12": abt.AdapterConfig(12),
        "hyperformer": HyperFormerConfig(small, names),
        "hyperformer++": HyperFormerConfig(small, names, shared=True),
        "pals": PalsConfig(names),
    }[method]


def run_missing(data_dir, only, turns):
    """Measures the missing cases, in turns."""
    cases = [case for case in CASES + HYPER_CASES if case[1] in only.split(",")]
    missing = LEDGER.missing((*case, turn) for turn in range(turns) for case in cases)
    for number, (tasks, method, turn) in enumerate(missing, 1):
        row = {"tasks": tasks, "method": method, "turn": turn}
        row |= measuring.run_in_process("benchmarks.several_speed", data_dir, method, str(tasks))
        print(f"{number} of {len(missing)}: {row}", flush=True)
        LEDGER.add("rows", [row])


def several_speed(rows_by_key):
    """Returns Markdown lines of adapters: a row for each case, with medians and ranges."""
    return _table(rows_by_key, CASES)


def hyper_speed(rows_by_key):
    """Returns Markdown lines of hypernetworks."""
    return _table(rows_by_key, HYPER_CASES)


def _table(rows_by_key, cases):
    rows = [
        "| tasks | method | examples/s | relative to one task | peak memory, MB |",
        "| --- |" + " --- |" * 4,
    ]
    results = {case: [row for key, row in rows_by_key.items() if key[:2] == case] for case in cases}
    cells = measuring.speed_rows(results)
    return rows + [f"| {tasks} | `{method}` | {cells[tasks, method]}" for tasks, method in cells]


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(several_speed, hyper_speed)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of MRPC."),
        only=(",".join(dict.fromkeys(c[1] for c in CASES + HYPER_CASES)), "Methods, with commas."),
        turns=(TURNS, "Number of measurements of each case."),
    )
