"""MiniLM and tweets: perplexity after training on their text, and what a task gains from it.

    python -m benchmarks.domain --data_dir=FOLDER             # runs what is missing
    python -m benchmarks.domain --data_dir=FOLDER --workers=2
    python -m benchmarks.domain --table                       # only writes the tables

FOLDER holds `crowdflower_{emotion,global_warming,political_bias,disasters}`. The text is that of
the first three tables, without labels; the task is the fourth, with few labels, and has none of the
text. Each method is trained on the text for the same number of steps. The task is then trained over
the text's adapter, from it, or on the adapted base, and on the base as it is. The adapters of the
text stay in `build/domain`, so a command that was stopped resumes with the next run.
"""

import collections
import csv
import gzip
import os
import pathlib
import shlex
import tempfile

from benchmarks import languages, ledger, measuring, runner

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "domain",
    page=runner.ROOT / "docs" / "results.md",
    key=lambda row: Run(row["kind"], row["name"], row["seed"]),
)
Run = collections.namedtuple("Run", "kind name seed")
TABLES = {  # File, its column of texts, and its encoding.
    "crowdflower_emotion/text_emotion.csv.gz": ("content", "utf-8"),
    "crowdflower_global_warming/1377884570_tweet_global_warming.csv": ("tweet", "mac_roman"),
    "crowdflower_political_bias/political_social_media.csv.gz": ("text", "mac_roman"),
}
FOLDER = runner.ROOT / "build" / "domain"
TEXT = ["run_adapt.py", "--max_seq_length=32", "--train_batch_size=32", "--precision=float32"]
TEXT += ["--num_train_epochs=0.3"]
METHODS = {
    "pfeiffer+inv": ["--adapter=pfeiffer+inv"],
    "houlsby": ["--adapter=houlsby"],
    "full": ["--tuning=full", "--learning_rate=1e-4"],
}
HEAD = "head alone"
TEXT_METHODS = {HEAD: ["--tuning=head"], **METHODS}
LABELS, SEEDS = 500, range(3)
TASK = [
    "run_classifier.py",
    "--task_name=crowdflower_disasters",
    *("--do_train", "--do_eval", f"--max_train_examples={LABELS}"),
    *("--max_seq_length=32", "--train_batch_size=32", "--num_train_epochs=10"),
    *("--learning_rate=1e-3", "--precision=float32", "--noreport"),
]
# What the task is trained on, and its flags.
NEW = "--adapter=pfeiffer"
STARTS = {
    "the base as it is": [NEW],
    "over pfeiffer+inv": [NEW, "--stack=TEXT/pfeiffer+inv"],
    "over houlsby": [NEW, "--stack=TEXT/houlsby"],
    "from pfeiffer+inv": ["--init_from=TEXT/pfeiffer+inv/adapter"],
    "the adapted base": [NEW, "--base_model=TEXT/base"],
}


def plan():
    """Returns all runs: those on text first."""
    texts = [Run("text", name, 0) for name in TEXT_METHODS]
    return texts + [Run("task", name, seed) for seed in SEEDS for name in STARTS]


def command(run, data_dir="DATA", out="OUT", text="TEXT"):
    """Returns the command of a run."""
    if run.kind == "text":
        return [*TEXT, f"--text_files={text}/tweets.txt", *TEXT_METHODS[run.name],
                f"--output_dir={text}/{run.name}"]  # fmt: skip
    own = [flag.replace("TEXT", str(text)) for flag in STARTS[run.name]]
    data = f"--data_dir={os.path.join(data_dir, 'crowdflower_disasters')}"
    return [*TASK, *own, data, f"--seed={run.seed}", f"--output_dir={out}"]


def write_tweets(data_dir):
    """Writes the texts of all tables, a line each."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = [line for name in TABLES for line in _texts(pathlib.Path(data_dir), name)]
    temporary = FOLDER / "tweets.tmp"
    temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    temporary.replace(FOLDER / "tweets.txt")


def _texts(data_dir, name):
    column, encoding = TABLES[name]
    opened = gzip.open if name.endswith(".gz") else open
    with opened(data_dir / name, "rt", encoding=encoding, newline="") as file:
        yield from (" ".join(row[column].split()) for row in csv.DictReader(file))


def measure(run, data_dir, core):
    """Runs one case on one core and adds its row."""
    print("*****", *run, flush=True)
    with tempfile.TemporaryDirectory() as out:
        arguments = command(run, data_dir, out, FOLDER)
        folder = FOLDER / run.name if run.kind == "text" else out
        record = runner.run_record(arguments, folder, core)
    row = run._asdict() | languages.facts(record)
    row |= {
        "trained": record["parameters"]["trained"],
        "command": shlex.join(["python", *command(run)]),
    }
    LEDGER.add("rows", [row | measuring.describe_machine(measuring.PACKAGES)])


def run_missing(data_dir, workers):
    """Runs the missing cases on `workers` cores; those on text before those of the task."""
    data_dir = os.path.abspath(data_dir)
    if not (FOLDER / "tweets.txt").exists():
        write_tweets(data_dir)

    def run_all(kind):
        runner.run_on_cores(
            lambda: [run for run in LEDGER.missing(plan()) if run.kind == kind],
            lambda run, core: measure(run, data_dir, core),
            workers,
        )

    run_all("text")
    if not (FOLDER / "base" / "config.json").exists():
        runner.export_base(FOLDER / "full" / "adapter", FOLDER / "base")
    run_all("task")


def domain_text(rows_by_key):
    """Returns Markdown lines: loss, perplexity and accuracy of masked pieces, by method."""
    lines = [
        "| trained | parameters | loss, nats | perplexity | masked pieces predicted |",
        "| --- |" + " --- |" * 4,
    ]
    for name in TEXT_METHODS:
        if row := rows_by_key.get(Run("text", name, 0)):
            values = row["eval"]
            lines.append(
                f"| {name} | {row['trained']:,} | {values['eval_loss']:.3f} "
                f"| {values['eval_perplexity']:.1f} | {values['eval_accuracy']:.1%} |"
            )
    return lines


def domain_task(rows_by_key):
    """Returns Markdown lines: the task's accuracy by what it was trained on."""
    lines = ["| trained on | accuracy | seeds |", "| --- | --- | --- |"]
    for name in STARTS:
        rows = [r for run, r in rows_by_key.items() if (run.kind, run.name) == ("task", name)]
        if rows:
            cell = measuring.spread([100 * row["eval"]["eval_accuracy"] for row in rows])
            lines.append(f"| {name} | {cell} | {len(rows)} |")
    return lines


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        lambda: LEDGER.write_tables(domain_text, domain_task),
        data_dir=(None, "Folder of the tables."),
        workers=(1, "Concurrent runs, one per core."),
    )
