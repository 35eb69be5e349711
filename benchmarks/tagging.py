"""Entities of WNUT-17: adapters, full fine-tuning, and PyTorch's `adapters`, on the same data.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.tagging --data_dir=FOLDER     # runs what is missing
    .venv-parity/bin/python -m benchmarks.tagging --data_dir=FOLDER --workers=2
    python -m benchmarks.tagging --table                                # only writes the tables

FOLDER holds `tagging/wnut17/{train,dev,test}.conll`. All train MiniLM, with batches of 32, at most
128 word pieces, a warm-up of a tenth of the steps and then linear decay to zero; their last weights
count. A grid of learning rates and epochs is run with seed 0, and the best F1 on dev chooses the
settings that are run with all seeds. `seqeval` computes all results. Runs of this project are
float32 on every processor; the first rows of its grids are of an earlier default, bfloat16_base.
Each run has its own process, and its line is added when it ends, so a command that was stopped
resumes with the next run.
"""

import collections
import io
import os
import shlex
import statistics
import tempfile

from benchmarks import ledger, measuring, runner, training_code

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "tagging",
    page=runner.ROOT / "docs" / "results.md",
    key=lambda row: Run(*(row[name] for name in Run._fields)),
)
PICTURE = runner.ROOT / "docs" / "images" / "tagging.png"
OURS, PEER = "adapter_bert_tf", "adapters (PyTorch)"
Run = collections.namedtuple("Run", "system method learning_rate epochs seed")
SMALL, LARGE = ("3e-4", "1e-3", "3e-3"), ("3e-5", "1e-4", "3e-4")
# Learning rates by system and method.
RATES = {(OURS, "adapters 64"): SMALL, (PEER, "adapters 64"): SMALL, (OURS, "full"): LARGE}
FLAGS = {"adapters 64": ["--adapter_size=64"], "full": ["--tuning=full"]}
EPOCHS, SEEDS, BATCH, SIZE = (5, 10), range(5), 32, 64
FOLDER = "tagging/wnut17"
SPLITS, MODULE = ("train", "dev", "test"), "benchmarks.tagging"


def grid(system, method):
    """Returns the runs that choose a learning rate and a number of epochs."""
    return [
        Run(system, method, rate, epochs, SEEDS[0])
        for epochs in EPOCHS
        for rate in RATES[system, method]
    ]


def chosen(rows_by_key, system, method):
    """Returns the runs with the best settings of a complete grid; none of an incomplete one."""
    runs = grid(system, method)
    if any(run not in rows_by_key for run in runs):
        return []
    best = max(runs, key=lambda run: rows_by_key[run]["dev_f1"])
    return [best._replace(seed=seed) for seed in SEEDS]


def plan(rows_by_key):
    """Returns the runs that are known so far: all grids first, then the seeds."""
    runs = [run for case in RATES for run in grid(*case)]
    runs += [run for case in RATES for run in chosen(rows_by_key, *case)]
    return list(dict.fromkeys(runs))


def command(run, data_dir="DATA", folder="OUT"):
    """Returns the command line of a run of this project."""
    return [
        "run_tagger.py",
        f"--data_dir={os.path.join(data_dir, FOLDER)}",
        *("--do_train", "--do_eval", "--do_predict"),
        *FLAGS[run.method],
        "--max_seq_length=128",
        f"--train_batch_size={BATCH}",
        "--eval_batch_size=32",
        "--precision=float32",
        f"--num_train_epochs={run.epochs}",
        f"--learning_rate={run.learning_rate}",
        f"--seed={run.seed}",
        f"--output_dir={folder}",
    ]


def run_ours(run, data_dir):
    """Trains and evaluates with this project's command; returns the results of a row."""
    with tempfile.TemporaryDirectory() as folder:
        record = runner.run_record(command(run, data_dir, folder), folder)
        _, predicted = read_file(os.path.join(folder, "test_predictions.conll"))
    _, gold = read_file(os.path.join(data_dir, FOLDER, "test.conll"))
    return {
        "dev_f1": record["eval"]["eval_f1"],
        "test_f1": entity_f1(gold, predicted),
        "eval": record["eval"],
        "steps": record["global_step"],
        "trained": record["parameters"]["trained"],
        "precision": record["flags"]["precision"],
        "cpu_seconds": round(record["train_cpu_seconds"], 1),
        "data_sha256": record["data_sha256"],
        "command": shlex.join(["python", *command(run)]),
        ledger.CODE_KEY: training_code.digest(of_several=False, of_tagging=True),
    }


def run_peer(run, data_dir):
    """Trains and evaluates with PyTorch's `adapters`; returns the results of a row."""
    import torch

    from benchmarks import tagging_peer

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    data, labels = read(data_dir)
    words, tags = data["train"]
    model, tokenizer = tagging_peer.load(SIZE, labels, run.seed)
    rows = tagging_peer.rows(tokenizer, words, tags, labels)
    steps = int(len(rows) * run.epochs / BATCH)  # As runs of this project have it.
    rate = float(run.learning_rate)
    seconds = tagging_peer.train(model, tokenizer, rows, BATCH, steps, rate)
    scores = {
        f"{split}_f1": entity_f1(
            tags, list(tagging_peer.predict(model, tokenizer, words, labels, BATCH))
        )
        for split, (words, tags) in data.items()
        if split != "train"
    }
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    return scores | {"steps": steps, "trained": trained, "cpu_seconds": round(seconds, 1)}


def read(data_dir):
    """Reads a dict from split to (words, tags) of its sentences, and the labels."""
    from adapter_bert_tf.data.tagging import schemes

    data = {s: read_file(os.path.join(data_dir, FOLDER, f"{s}.conll")) for s in SPLITS}
    return data, schemes.labels_of(data["train"][1], "IOB2")


def read_file(path):
    """Reads words and tags (the last column) of the sentences of a file."""
    from adapter_bert_tf.data.tagging import sentences

    found = list(sentences.read_sentences(path, sentences.TagFormat()))
    return [list(sentence.words) for sentence in found], [list(s.tags) for s in found]


def entity_f1(gold, predicted):
    """Computes the F1 of entities, 0 to 1, as conlleval does."""
    from seqeval.metrics import f1_score

    return float(f1_score(gold, predicted))


def measure(system, method, learning_rate, epochs, seed, data_dir):
    """Runs one case; runs in a separate process."""
    run = Run(system, method, learning_rate, int(epochs), int(seed))
    results = (run_ours if system == OURS else run_peer)(run, data_dir)
    packages = measuring.PACKAGES if system == OURS else measuring.PEER_PACKAGES
    return run._asdict() | results | measuring.describe_machine((*packages, "seqeval"))


def run_missing(data_dir, only, workers):
    """Runs the missing cases on `workers` cores: the grids, and then all seeds."""
    data_dir = os.path.abspath(data_dir)

    def add(run, core):
        print("*****", *run, flush=True)
        LEDGER.add("rows", [measuring.run_in_process(MODULE, *map(str, run), data_dir, core=core)])

    def missing():
        runs = LEDGER.missing(plan(LEDGER.rows()))
        return [run for run in runs if run.system in only.split(";")]

    runner.run_on_cores(missing, add, workers)


def tagging(rows_by_key):
    """Returns Markdown lines: the chosen settings, medians and ranges of the seeds; a picture."""
    lines = [
        "| system | method | rate | epochs | dev F1 | test F1 | seeds | trained | seconds |",
        "| --- |" + " --- |" * 8,
    ]
    for case in RATES:
        runs = [run for run in chosen(rows_by_key, *case) if run in rows_by_key]
        if not runs:
            continue
        rows = [rows_by_key[run] for run in runs]
        cells = [
            measuring.spread([100 * row[f"{split}_f1"] for row in rows])
            for split in ("dev", "test")
        ]
        seconds = statistics.median(row["cpu_seconds"] for row in rows)
        lines.append(
            f"| {' | '.join(case)} | {runs[0].learning_rate} | {runs[0].epochs} "
            f"| {' | '.join(cells)} | {len(rows)} | {rows[0]['trained']:,} | {seconds:.0f} |"
        )
    about = "F1 on dev and test of each seed, adapters and full fine-tuning"
    return [*lines, "", f"![{about}](images/{PICTURE.name})"] if lines[3:] else lines


def tagging_grid(rows_by_key):
    """Returns Markdown lines: F1 on dev with seed 0 of all learning rates and epochs."""
    lines = ["| system | method | epochs | dev F1, by learning rate |", "| --- |" + " --- |" * 3]
    for case in RATES:
        for epochs in EPOCHS:
            runs = [run for run in grid(*case) if run.epochs == epochs and run in rows_by_key]
            cells = [f"{r.learning_rate}: {100 * rows_by_key[r]['dev_f1']:.1f}" for r in runs]
            lines += [f"| {' | '.join(case)} | {epochs} | {', '.join(cells)} |"] if cells else []
    return lines


def draw(rows_by_key):
    """Draws F1 of each seed with the chosen settings, PNG bytes; None for less than two cases."""
    cases = {case: [r for r in chosen(rows_by_key, *case) if r in rows_by_key] for case in RATES}
    cases = {case: [rows_by_key[run] for run in runs] for case, runs in cases.items() if runs}
    if len(cases) < 2:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 1.3 + 0.5 * len(cases)), layout="constrained")
    axes = figure.subplots()
    for split, mark, color in (("dev", "o", "#1d4f91"), ("test", "s", "#b35900")):
        for place, rows in enumerate(cases.values()):
            values = [100 * row[f"{split}_f1"] for row in rows]
            axes.plot(values, [place] * len(values), mark, color=color, alpha=0.6, mec="none",
                      label=None if place else f"{split}, each seed")  # fmt: skip
            axes.plot(statistics.median(values), place, "|", color=color, ms=18, mew=2)
    names = [f"{system}\n{method}" for system, method in cases]
    axes.set_yticks(range(len(cases)), names, fontsize=9)
    axes.set(xlabel="F1 of entities, WNUT-17 (%); bars are medians", ylim=(len(cases) - 0.5, -0.5))
    axes.grid(axis="x", color="#dddddd")
    axes.legend(fontsize=9)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()


def write_tables():
    """Rewrites the tables in docs/results.md, and the picture."""
    LEDGER.write_tables(tagging, tagging_grid)
    picture = draw(LEDGER.rows())
    if picture and ledger.RESULTS == ledger.COMMITTED:
        PICTURE.write_bytes(picture)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        only=(f"{OURS};{PEER}", "Systems, separated by semicolons."),
        workers=(1, "Concurrent runs, one per core."),
    )
