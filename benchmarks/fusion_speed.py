"""Training speed and memory of fusions of 1 to 30 members, relative to one adapter.

    python -m benchmarks.fusion_speed --data_dir=GLUE/MRPC      # measures what is missing
    python -m benchmarks.fusion_speed --table                   # only rewrites docs/results.md

Pfeiffer adapters of size 64 on MiniLM, no LayerNorms trained, batch 32, at most 128 word pieces,
float32, input pipeline included. Each measurement has its own process. They take turns, so that
other load affects all of them. The first steps (compilation) are not counted.
"""

import pathlib

import numpy as np

from benchmarks import ledger, measuring, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "fusion_speed",
    page=ROOT / "docs" / "fusion.md",
    key=lambda row: (row["members"], row["turn"]),
)
SIZES = (0, 1, 2, 4, 6, 10, 15, 20, 30)  # 0: one adapter, without a fusion.
TURNS, BATCH, LENGTH, WARMUP, STEPS = 2, 32, 128, 8, 40


def measure(data_dir, members):
    """Measures examples/s and MB of training; runs in a separate process."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.output.provenance import peak_memory_mb
    from adapter_bert_tf.tasks import find_task

    base = abt.load_base()
    examples = read_examples(find_task("mrpc"), data_dir, ["train"])["train"]
    model, tuning = new_model(base, int(members))
    abt.select_trained(model, tuning)
    features = measuring.features(examples, base, LENGTH)
    rate = measuring.training_rate(model, features, BATCH, LENGTH, WARMUP, STEPS, 1e-4)
    return {"examples_per_second": rate, "peak_memory_mb": peak_memory_mb()}


def new_model(base, members):
    """Makes a model with its own base, as a run does: of one adapter, or of a fusion."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig

    config, tuning = abt.PRESETS["pfeiffer"], abt.Tuning(train_layer_norm=False)
    if members:
        config = FusionConfig(config, tuple(f"member {i}" for i in range(members)))
        tuning = abt.Tuning("fusion")
    model = abt.Classifier(base.build_encoder(config), 2)
    rng = np.random.default_rng(0)
    for name, variable in model.named_variables().items():
        if name.startswith("members/") and name.endswith("up_kernel"):
            variable.assign(rng.normal(0, 0.02, variable.shape))
    return model, tuning


def run_missing(data_dir):
    """Measures the missing cases, in turns."""
    missing = LEDGER.missing((n, turn) for turn in range(TURNS) for n in SIZES)
    for number, (members, turn) in enumerate(missing, 1):
        row = {"members": members, "turn": turn}
        row |= measuring.run_in_process("benchmarks.fusion_speed", data_dir, str(members))
        print(f"{number} of {len(missing)}: {row}", flush=True)
        LEDGER.add("rows", [row])


def fusion_speed(rows_by_key):
    """Returns Markdown lines: a row a number of members, medians and ranges of the turns."""
    rows = [
        "| members | examples/s | relative to one adapter | peak memory, MB |",
        "| --- | --- | --- | --- |",
    ]
    results = {n: [row for (m, _), row in rows_by_key.items() if m == n] for n in SIZES}
    cells = measuring.speed_rows(results)
    return rows + [f"| {n or 'one adapter, no fusion'} | {cells[n]}" for n in cells]


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(fusion_speed)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(__doc__, run_missing, write_tables, data_dir=(None, "Folder of MRPC."))
