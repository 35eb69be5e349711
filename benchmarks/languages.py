"""A task that is trained in one language and answers in another, by exchanging what is below it.

    python -m benchmarks.languages --data_dir=FOLDER             # runs what is missing
    python -m benchmarks.languages --data_dir=FOLDER --workers=2
    python -m benchmarks.languages --table                       # only writes the tables

FOLDER holds `bbc_news` and `news_aggregator`. The languages are those of `language_texts`. A base
of random weights is trained on the texts of both, once; it stays in `build/languages`, where a
command that was stopped continues its training. Each further run trains an adapter for each
language on its texts, then a task adapter (topics of headlines) over that of A with A's labels, and
scores A's dev set, and B's with the adapter of B in the place of A's, and with A's still there. Its
line is added when it ends.
"""

import collections
import os
import shlex
import shutil
import statistics
import tempfile

import numpy as np

from benchmarks import language_texts, ledger, measuring, runner, training_code
from benchmarks.language_texts import LANGUAGES, LENGTH

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "languages",
    page=runner.ROOT / "docs" / "results.md",
    key=lambda row: Run(row["adapters"], row["seed"]),
)
MODULE = "benchmarks.languages"
Run = collections.namedtuple("Run", "adapters seed")
# Presets of the languages' adapters; the task's is `pfeiffer` in all runs.
NONE, PRESETS, SEEDS = "none", ("pfeiffer", "pfeiffer+inv"), range(5)
BASE = Run("base", 0)
FOLDER = runner.ROOT / "build" / "languages"
BASE_EPOCHS, TEXT_EPOCHS, TASK_EPOCHS = 8, 0.5, 3
COMMON = [f"--max_seq_length={LENGTH}", "--precision=float32", "--noreport"]
TEXT = ["run_adapt.py", "--train_batch_size=128", *COMMON]
TASK = ["run_classifier.py", "--task_name=tsv", "--text_a_column=text", "--label_column=label"]
TASK += ["--do_train", "--adapter=pfeiffer", "--adapter_size=16", "--train_batch_size=32"]
TASK += [f"--num_train_epochs={TASK_EPOCHS}", "--learning_rate=1e-3", *COMMON]
# What is measured: the language that is read, and the one whose adapter is below the task's.
SCORES = {"a over a": ("a", "a"), "b over b": ("b", "b"), "b over a": ("b", "a")}


def plan():
    """Returns all runs; the base is trained before them."""
    return [Run(adapters, seed) for seed in SEEDS for adapters in (NONE, *PRESETS)]


def base_command(out, texts="TEXTS"):
    """Returns the command that trains the base on the texts of both languages."""
    files = ",".join(f"{texts}/{language}.txt" for language in LANGUAGES)
    return [
        *TEXT,
        "--tuning=full",
        f"--vocab_file={texts}/vocab.txt",
        f"--bert_config_file={texts}/config.json",
        f"--text_files={files}",
        "--learning_rate=2e-3",
        f"--num_train_epochs={BASE_EPOCHS}",
        "--save_checkpoints_steps=500",
        f"--output_dir={out}",
    ]


def text_command(run, language, out="OUT", texts="TEXTS", base="BASE"):
    """Returns the command that trains the adapter of a language."""
    return [
        *TEXT,
        f"--base_model={base}",
        f"--text_files={texts}/{language}.txt",
        f"--adapter={run.adapters}",
        "--adapter_size=32",
        "--learning_rate=1e-3",
        f"--num_train_epochs={TEXT_EPOCHS}",
        f"--seed={run.seed}",
        f"--output_dir={out}/{language}",
    ]


def task_command(run, out="OUT", texts="TEXTS", base="BASE"):
    """Returns the command that trains the task in A, over A's adapter if there is one."""
    stack = [] if run.adapters == NONE else [f"--stack={out}/a"]
    own = [f"--base_model={base}", f"--data_dir={texts}/a", f"--seed={run.seed}"]
    return [*TASK, *stack, *own, f"--output_dir={out}/task"]


def train_base(data_dir):
    """Trains the base, exports it and adds its row; returns its folder in `build/languages`."""
    base, out = FOLDER / "base", FOLDER / "run"
    if base.is_dir() and BASE in LEDGER.rows():
        return base
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not (FOLDER / "config.json").exists():  # It is written last.
        language_texts.write(data_dir, FOLDER)
    print("***** base", flush=True)
    record = runner.run_record(base_command(out, FOLDER), out)
    shutil.rmtree(base, ignore_errors=True)
    runner.export_base(out / "adapter", base, f"--base_model={FOLDER}")
    row = {"aligned": aligned_pieces(base), "command": shlex.join(["python", *base_command("OUT")])}
    _add("base", BASE, row | facts(record))
    return base


def aligned_pieces(base):
    """The share of A's word pieces whose nearest piece of B, by cosine, is their translation."""
    import safetensors.numpy

    tensors = safetensors.numpy.load_file(base / "model.safetensors")
    table = tensors["bert.embeddings.word_embeddings.weight"]
    pieces = (base / "vocab.txt").read_text(encoding="utf-8").split()
    places = {piece: place for place, piece in enumerate(pieces)}
    pairs = [(i, places.get(language_texts.translate(p))) for p, i in places.items()]
    own, others = np.array([(i, j) for i, j in pairs if j not in (None, i)]).T
    table = table / np.linalg.norm(table, axis=1, keepdims=True)
    nearest = (table[own] @ table[others].T).argmax(1)
    return float((nearest == np.arange(len(own))).mean())


def run(case, base, core):
    """Trains the adapters of one case on one core, scores them, and adds the row."""
    print("*****", *case, flush=True)
    with tempfile.TemporaryDirectory() as out:
        texts = [] if case.adapters == NONE else LANGUAGES
        given = (out, FOLDER, base)
        records = {
            language: runner.run_record(
                text_command(case, language, *given), f"{out}/{language}", core
            )
            for language in texts
        }
        record = runner.run_record(task_command(case, *given), f"{out}/task", core)
        scores = measuring.run_in_process(MODULE, out, case.adapters, str(base), core=core)
    losses = {f"loss_{name}": r["eval"]["eval_loss"] for name, r in records.items()}
    commands = [text_command(case, language) for language in texts] + [task_command(case)]
    row = {"scores": scores, **losses, "trained": record["parameters"]["trained"]}
    row["commands"] = [shlex.join(["python", *command]) for command in commands]
    _add("runs", case, row | facts(record))


def facts(record):
    """What all rows have of a run's `run.json`, and the code that trained it."""
    return {
        "eval": record.get("eval"),
        "steps": record["global_step"],
        "cpu_seconds": round(record["train_cpu_seconds"], 1),
        ledger.CODE_KEY: training_code.digest(of_several=False),
    }


def _add(file, case, row):
    LEDGER.add(file, [case._asdict() | row | measuring.describe_machine(measuring.PACKAGES)])


def measure(out, adapters, base):
    """Returns the accuracy of each of SCORES; runs in a separate process."""
    import adapter_bert_tf as abt

    task = f"{out}/task/adapter"
    if adapters == NONE:
        predictor = abt.Predictor(task, base=base)
        return {name: accuracy(predictor, name[0]) for name in ("a over a", "b over b")}
    return {
        name: accuracy(abt.Predictor(task, base=base, stack=f"{out}/{below}"), language)
        for name, (language, below) in SCORES.items()
    }


def accuracy(predictor, language):
    """Returns the share of a dev set that is answered correctly."""
    lines = (FOLDER / language / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts, labels = zip(*(line.split("\t") for line in lines), strict=True)
    answers = predictor(list(texts))
    return float(np.mean([a["label"] == own for a, own in zip(answers, labels, strict=True)]))


def run_missing(data_dir, workers):
    """Trains the base, then runs the missing cases on `workers` cores."""
    base = train_base(os.path.abspath(data_dir))
    runner.run_on_cores(
        lambda: LEDGER.missing(plan()), lambda case, core: run(case, base, core), workers
    )


def languages(rows_by_key):
    """Returns Markdown lines: accuracy in both languages, medians and ranges of the seeds."""
    lines = [
        "| language adapters | A | B, B's adapter below | B, A's adapter below | seeds |",
        "| --- |" + " --- |" * 4,
    ]
    for adapters in (NONE, *PRESETS):
        rows = [row for case, row in rows_by_key.items() if case.adapters == adapters]
        if rows:
            cells = [
                measuring.spread([100 * r["scores"][n] for r in rows if n in r["scores"]])
                for n in SCORES
            ]
            lines.append(f"| {adapters} | {' | '.join(cells)} | {len(rows)} |")
    return lines


def language_base(rows_by_key):
    """Returns Markdown lines: loss and alignment of the base, losses of the language adapters."""
    if BASE not in rows_by_key:
        return []
    row = rows_by_key[BASE]
    lines = [
        "| | loss, nats | |",
        "| --- | --- | --- |",
        f"| base, both languages | {row['eval']['eval_loss']:.2f} | {row['steps']:,} steps; the "
        f"nearest piece of B is the translation for {row['aligned']:.0%} of A's pieces |",
    ]
    for adapters in PRESETS:
        rows = [row for case, row in rows_by_key.items() if case.adapters == adapters]
        if rows:
            cells = [statistics.median(row[f"loss_{name}"] for row in rows) for name in LANGUAGES]
            lines.append(f"| {adapters} | A {cells[0]:.2f}, B {cells[1]:.2f} | |")
    return lines


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        lambda: LEDGER.write_tables(languages, language_base),
        data_dir=(None, "Folder with bbc_news and news_aggregator."),
        workers=(1, "Concurrent runs, one per core."),
    )
