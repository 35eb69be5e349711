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
MODULE, ONE = "benchmarks.growth", "one number of rows"


def times(call):
    """Milliseconds of each of some calls, after the first ones."""
    return measuring.milliseconds(call, WARMUP, COUNTED)


def measure_batches(shapes):
    """Milliseconds of training steps and of calls, for batches of (rows, length)."""
    import tensorflow as tf

    import adapter_bert_tf as abt
    from adapter_bert_tf.training import loop
    from benchmarks.many_tasks import batch

    base = abt.load_base()
    model = abt.Classifier(base.build_encoder(abt.AdapterConfig(bottleneck_size=SIZE)), 2)
    abt.select_trained(model, abt.Tuning())
    loop.compile_model(model, loop.TrainingSettings(1000, 1, 1e-3))
    answer = tf.function(lambda inputs: model(inputs, training=False), autograph=False)
    step = tf.function(lambda *fed: model.train_step(fed), autograph=False)
    found = []
    for rows, length in shapes:
        inputs = {name: tf.constant(value) for name, value in batch(rows, length).items()}
        labels = inputs["input_word_ids"][:, 0] % 2
        trained = times(lambda inputs=inputs, labels=labels: step(inputs, labels))
        answered = times(lambda inputs=inputs: answer(inputs).numpy())
        found.append({"a training step": trained, "a call": answered})
    return found


def measure_tasks(data_dir):
    """Milliseconds of calls whose rows belong to several tasks."""
    import adapter_bert_tf as abt
    from benchmarks.many_tasks import batch

    model = abt.AdapterModel(abt.load_base())
    names = [f"task{i}" for i in range(max(POINTS["tasks"]))]
    for name in names:
        model.add_adapter(name, ("0", "1"), abt.AdapterConfig(bottleneck_size=SIZE))
    inputs, found = batch(ROWS, SHORT), []
    for count in POINTS["tasks"]:
        of_rows = list(itertools.islice(itertools.cycle(names[:count]), ROWS))
        found.append({"a call": times(lambda of_rows=of_rows: model(inputs, of_rows))})
    return found


def measure_rows(data_dir):
    """Seconds and MB of several numbers of rows, each in processes of its own."""
    found = []
    for count in POINTS["rows"]:
        rows = [measuring.apart(MODULE, ONE, data_dir, str(count)) for _ in range(TURNS)]
        found.append({name: [row[name] for row in rows] for name in rows[0]})
    return found


def measure_one(data_dir, count):
    """Seconds from a table to the plan of an epoch, and MB that this adds to the process."""
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.data.batches import plan_batches
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.output.provenance import peak_memory_mb
    from adapter_bert_tf.tasks import find_task

    base = load_base()
    few = read_examples(find_task("mrpc"), data_dir, ["train"])["train"]
    measuring.features(few.take(list(range(32))), base, 128)  # Loads what its first use loads.
    before, began = peak_memory_mb(), time.perf_counter()
    rows = few.take([i % len(few) for i in range(count)])
    lengths = measuring.features(rows, base, 128).lengths
    plan_batches(lengths, 32, count // 32, 0)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "megabytes": peak_memory_mb() - before}


def measure(kind, data_dir, count="0"):
    """The values of each of a kind's points; for a process of its own."""
    if kind == ONE:
        return measure_one(data_dir, int(count))
    if kind == "length":
        return measure_batches([(8, length) for length in POINTS[kind]])
    if kind == "batch":
        return measure_batches([(rows, SHORT) for rows in POINTS[kind]])
    return measure_tasks(data_dir) if kind == "tasks" else measure_rows(data_dir)


def run_missing(data_dir):
    """Measures the missing cases."""
    for kind in LEDGER.missing(POINTS):
        values = measuring.apart(MODULE, kind, str(pathlib.Path(data_dir).resolve()))
        row = {"kind": kind, "points": POINTS[kind], "values": values}
        LEDGER.add("rows", [row | measuring.machine()])
        print(kind, values, flush=True)


def growth(there):
    """Markdown lines: the median of each point."""
    lines = ["| | " + " | ".join(["what"] + [""] * 5) + " |", "| --- |" + " --- |" * 6]
    for kind, row in there.items():
        for what in row["values"][0]:
            middle = [statistics.median(values[what]) for values in row["values"]]
            cells = [f"{x:,}: {y:,.1f}" for x, y in zip(row["points"], middle, strict=True)]
            unit = "" if kind == "rows" else ", ms"
            cells += [""] * (5 - len(cells))
            lines.append(f"| {AXES[kind][0]} | {what}{unit} | {' | '.join(cells)} |")
    return lines


def draw(there):
    """The figure: a panel a kind; a grey line shows what grows in proportion."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    figure = Figure(figsize=(8.4, 6.4), layout="constrained")
    for panel, (kind, row) in zip(figure.subplots(2, 2).flat, there.items(), strict=True):
        points = row["points"]
        for what, look in zip(row["values"][0], ("o-", "s--"), strict=False):
            if what == "megabytes":
                continue
            of_each = [values[what] for values in row["values"]]
            middle = [statistics.median(values) for values in of_each]
            below = [m - min(v) for m, v in zip(middle, of_each, strict=True)]
            above = [max(v) - m for m, v in zip(middle, of_each, strict=True)]
            panel.errorbar(points, middle, [below, above], fmt=look, capsize=3, label=what)
            if kind != "tasks":
                last = middle[-1] / points[-1]
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
    """Replaces the table in its page, and the picture."""
    from adapter_bert_tf.analysis.outputs import pictures

    LEDGER.write_tables(growth)
    rows = LEDGER.rows()
    if len(rows) == len(POINTS) and ledger.RESULTS == ledger.COMMITTED:
        for name, content in pictures(draw(rows), NAME, "python -m benchmarks.growth").items():
            (FIGURES / name).write_bytes(content)


if __name__ == "__main__" and not runner.worker(measure):
    runner.command(__doc__, run_missing, write_tables, data_dir=(None, "Folder of MRPC."))
