"""The figures of docs/analyses.md, from trained adapters; a later call resumes.

    python -m benchmarks.analyses --data_dir=FOLDER --work=FOLDER2             # all of them
    python -m benchmarks.analyses --data_dir=FOLDER --work=FOLDER2 --only=ablation --tasks=mrpc

FOLDER holds `glue/MRPC`, `glue/CoLA` and `glue/MNLI-subset`; FOLDER2 keeps the runs, which take
hours, for the next call. Tables and pictures go to docs/figures.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from benchmarks import runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
TASKS = {"mrpc": "glue/MRPC", "cola": "glue/CoLA", "mnli": "glue/MNLI-subset"}
EPOCHS = {"mrpc": 5, "cola": 10, "mnli": 5}  # As in benchmarks.result_cases.
LENGTH = "--max_seq_length=128"
TRAINED = ("--do_train", "--do_eval", LENGTH, "--train_batch_size=32", "--learning_rate=1e-3")
# Analyses with many trainings use fewer examples, except for CoLA, whose texts are short.
SHORT = (LENGTH, "--train_batch_size=32", "--learning_rate=1e-3", "--num_train_epochs=3")
FEWER = {"mrpc": ("--max_train_examples=2000",), "mnli": ("--max_train_examples=1500",)}
ANALYSES = ("ablation", "influence", "init_scale", "variants")
ENDS = ("csv", "png", "svg")


def run_missing(data_dir, work, only, tasks):
    """Runs the analyses of each task and copies their files."""
    work = pathlib.Path(work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "DATA").exists():  # Pictures hold their command, which must not name this path.
        (work / "DATA").symlink_to(pathlib.Path(data_dir).resolve())
    for name in only.split(","):
        for task in tasks.split(","):
            _analyze(name, task, work)


def _analyze(name, task, work):
    data = (f"--task_name={task}", f"--data_dir=DATA/{TASKS[task]}")
    out = f"{task}/{name}"
    arguments = [name, *data, f"--output_dir={out}"]
    if name in ("ablation", "influence"):
        trained = f"{task}/trained"
        epochs = f"--num_train_epochs={EPOCHS[task]}"
        script = str(ROOT / "run_classifier.py")
        _run(work, script, *data, *TRAINED, epochs, f"--output_dir={trained}")
        arguments += [f"--adapter_dir={trained}/adapter", LENGTH]
    else:
        arguments += [*SHORT, *FEWER.get(task, ()), "--noreport"]
    if name == "ablation":
        arguments += ["--sublayers=both,attention,feed_forward"]
    _run(work, "-m", "adapter_bert_tf.analysis", *arguments)
    for end in ENDS:
        target = FIGURES / f"{name}_{task}.{end}"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(work / out / f"{name}.{end}", target)


def _run(folder, *arguments):
    print("*****", *arguments, flush=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True)


def write_tables():
    """Draws the size map from the available rows."""
    rows = [f"benchmarks/results/{name}.jsonl" for name in ("classification", "squad")]
    arguments = ("size_map", *rows, "--tasks=mrpc,cola,sts-b,squad", "--output_dir=docs/figures")
    _run(ROOT, "-m", "adapter_bert_tf.analysis", *arguments)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        work=(None, "Folder for the runs' output."),
        only=(",".join(ANALYSES), "Analyses, separated by commas."),
        tasks=(",".join(TASKS), "Tasks, separated by commas."),
    )
