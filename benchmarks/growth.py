"""Growth of cost with input length, batch size, number of tasks and number of training rows.

    python -m benchmarks.growth --data_dir=GLUE/MRPC      # measures what is missing
    python -m benchmarks.growth --table                   # only redraws the picture and the table

MiniLM, adapters of size 64. Each kind has its own process. A point is the median of several steps
or calls, with their range; the first ones do not count.

- `length`: a training step and a call, batch 8, all rows of one length.
- `batch`: the same at length 32.
- `tasks`: one call, 100 rows of 32 word pieces that belong to this number of tasks.
- `rows`: tokenizing this number of pairs of MRPC (repeated above 3,668) and planning an epoch, and
  the memory that this adds; three processes each.
"""

import itertools
import pathlib
import statistics
import time

from benchmarks import ledger, measuring, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "growth",
    page=ROOT / "docs" / "performance.md",
    key=lambda row: row["kind"],
)
NAME, FIGURES = "growth", ROOT / "docs" / "figures"
POINTS = {
    "length": (32, 64, 128, 256, 512),
    "batch": (1, 4, 16, 64, 256),
    "tasks": (1, 3, 10, 30, 100),
    "rows": (1_000, 10_000, 100_000),
}
AXES = {
    "length": ("word pieces in each of 8 rows", "ms"),
    "batch": ("rows of 32 word pieces", "ms"),
    "tasks": ("tasks in a batch of 100 rows", "ms"),
    "rows": ("training examples", "s to tokenize and plan"),
}
SIZE, WARMUP, COUNTED, ROWS, SHORT, TURNS = 64, 2, 7, 100, 32, 3
MODULE, ROW_COUNT = "benchmarks.growth", "one number of rows"


def time_calls(call):
    """Measures milliseconds of calls, without the first ones."""
    return measuring.time_calls(call, WARMUP, COUNTED)


def measure_batches(shapes):
    """Measures milliseconds of training steps and of calls, for batches of (rows, length)."""
    import tensorflow as tf

    import adapter_bert_tf as abt
    from adapter_bert_tf.training import loop
    from benchmarks.many_tasks import batch

    base = abt.load_base()
    model = abt.Classifier(base.build_encoder(abt.AdapterConfig(bottleneck_size=SIZE)), 2)
    abt.select_trained(model, abt.Tuning())
    loop.compile_model(model, loop.TrainingSettings(1000, 1, 1e-3))
    answer = tf.function(lambda inputs: model(inputs, training=False), autograph=False)
    step = tf.function(lambda *dataset: model.train_step(dataset), autograph=False)
    results = []
    for rows, length in shapes:
        inputs = {name: tf.constant(value) for name, value in batch(rows, length).items()}
        labels = inputs["input_word_ids"][:, 0] % 2
        trained = time_calls(lambda inputs=inputs, labels=labels: step(inputs, labels))
        answered = time_calls(lambda inputs=inputs: answer(inputs).numpy())
        results.append({"a training step": trained, "a call": answered})
    return results


def measure_tasks(data_dir):
    """Measures milliseconds of calls with rows of several tasks."""
    import adapter_bert_tf as abt
    from benchmarks.many_tasks import batch

    model = abt.AdapterModel(abt.load_base())
    names = [f"task{i}" for i in range(max(POINTS["tasks"]))]
    for name in names:
        model.add_adapter(name, ("0", "1"), abt.AdapterConfig(bottleneck_size=SIZE))
    inputs, results = batch(ROWS, SHORT), []
    for count in POINTS["tasks"]:
        row_tasks = list(itertools.islice(itertools.cycle(names[:count]), ROWS))
        results.append({"a call": time_calls(lambda row_tasks=row_tasks: model(inputs, row_tasks))})
    return results


def measure_rows(data_dir):
    """Measures seconds and MB for several numbers of rows, in separate processes."""
    results = []
    for count in POINTS["rows"]:
        rows = [
            measuring.run_in_process(MODULE, ROW_COUNT, data_dir, str(count)) for _ in range(TURNS)
        ]
        results.append({name: [row[name] for row in rows] for name in rows[0]})
    return results


def measure_row_count(data_dir, count):
    """Measures seconds from a table to the plan of an epoch, and the added MB."""
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.data.batches import plan_batches
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.output.provenance import peak_memory_mb
    from adapter_bert_tf.tasks import find_task

    base = load_base()
    few = read_examples(find_task("mrpc"), data_dir, ["train"])["train"]
    measuring.features(few.take(list(range(32))), base, 128)  # The first use loads libraries.
    before, start = peak_memory_mb(), time.perf_counter()
    rows = few.take([i % len(few) for i in range(count)])
    lengths = measuring.features(rows, base, 128).lengths
    plan_batches(lengths, 32, count // 32, 0)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "megabytes": peak_memory_mb() - before}


def measure(kind, data_dir, count="0"):
    """Measures all points of a kind; runs in a separate process."""
    if kind == ROW_COUNT:
        return measure_row_count(data_dir, int(count))
    if kind == "length":
        return measure_batches([(8, length) for length in POINTS[kind]])
    if kind == "batch":
        return measure_batches([(rows, SHORT) for rows in POINTS[kind]])
    return measure_tasks(data_dir) if kind == "tasks" else measure_rows(data_dir)


def run_missing(data_dir):
    """Measures the missing cases."""
    for kind in LEDGER.missing(POINTS):
        values = measuring.run_in_process(MODULE, kind, str(pathlib.Path(data_dir).resolve()))
        row = {"kind": kind, "points": POINTS[kind], "values": values}
        LEDGER.add("rows", [row | measuring.describe_machine()])
        print(kind, values, flush=True)


def growth(rows_by_key):
    """Returns Markdown lines: the median of each point."""
    lines = ["| | " + " | ".join(["what"] + [""] * 5) + " |", "| --- |" + " --- |" * 6]
    for kind, row in rows_by_key.items():
        for label in row["values"][0]:
            medians = [statistics.median(values[label]) for values in row["values"]]
            cells = [f"{x:,}: {y:,.1f}" for x, y in zip(row["points"], medians, strict=True)]
            unit = "" if kind == "rows" else ", ms"
            cells += [""] * (5 - len(cells))
            lines.append(f"| {AXES[kind][0]} | {label}{unit} | {' | '.join(cells)} |")
    return lines


def draw(rows_by_key):
    """Draws a panel for each kind; grey lines show proportional growth."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    figure = Figure(figsize=(8.4, 6.4), layout="constrained")
    for panel, (kind, row) in zip(figure.subplots(2, 2).flat, rows_by_key.items(), strict=True):
        points = row["points"]
        for label, look in zip(row["values"][0], ("o-", "s--"), strict=False):
            if label == "megabytes":
                continue
            values_by_point = [values[label] for values in row["values"]]
            medians = [statistics.median(values) for values in values_by_point]
            below = [m - min(v) for m, v in zip(medians, values_by_point, strict=True)]
            above = [max(v) - m for m, v in zip(medians, values_by_point, strict=True)]
            panel.errorbar(points, medians, [below, above], fmt=look, capsize=3, label=label)
            if kind != "tasks":
                last = medians[-1] / points[-1]
                panel.plot(points, [last * x for x in points], ":", color="#999999", zorder=0)
        panel.set_xscale("log")
        if kind == "tasks":
            panel.set_ylim(0, None)
        else:
            panel.set_yscale("log")
        panel.set_xticks(points, [f"{x:,}" for x in points], minor=False)
        panel.xaxis.set_minor_locator(NullLocator())
        if kind != "tasks":
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_minor_locator(NullLocator())
            panel.yaxis.set_major_formatter("{x:,g}")
        panel.set_xlabel(AXES[kind][0])
        panel.set_ylabel(AXES[kind][1])
        panel.grid(color="#dddddd")
        if len(row["values"][0]) > 1 and kind != "rows":
            panel.legend(frameon=False)
    return figure


def write_tables():
    """Rewrites the table in its page and the picture."""
    from adapter_bert_tf.analysis.outputs import picture_files

    LEDGER.write_tables(growth)
    rows = LEDGER.rows()
    if len(rows) == len(POINTS) and ledger.RESULTS == ledger.COMMITTED:
        for name, content in picture_files(draw(rows), NAME, "python -m benchmarks.growth").items():
            (FIGURES / name).write_bytes(content)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(__doc__, run_missing, write_tables, data_dir=(None, "Folder of MRPC."))
