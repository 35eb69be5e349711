"""The comparison of methods in docs/results.md: real runs, one JSON line each, taken up again.

    python benchmarks/results.py --data_dir=FOLDER              # runs what is not there yet
    python benchmarks/results.py --data_dir=FOLDER --only=mrpc,cola --workers=2
    python benchmarks/results.py --table                        # only rewrites docs/results.md

FOLDER holds `glue/MRPC/...` and `extra/20_newsgroups/...`. Every run is one `run_classifier.py` in
a process of its own; its line is added to benchmarks/results/classification.jsonl when it ends.
"""

import collections
import json
import os
import pathlib
import queue
import shlex
import subprocess
import sys
import tempfile
from concurrent import futures

from absl import app, flags

flags.DEFINE_string("data_dir", None, "Folder with the tasks' folders.")
flags.DEFINE_list("only", [], "Tasks to run; default: all.")
flags.DEFINE_integer("workers", 1, "Runs side by side, each on one core of its own.")
flags.DEFINE_bool("table", False, "Write docs/results.md from what is there, and stop.")
FLAGS = flags.FLAGS

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES = ROOT / "benchmarks" / "results" / "classification.jsonl"
TABLE = ROOT / "docs" / "results.md"
COMMON = ["--do_train", "--do_eval", "--train_batch_size=32", "--eval_batch_size=32",
          "--max_seq_length=128"]

Case = collections.namedtuple("Case", "folder epochs seeds")
TASKS = {
    "mrpc": Case("glue/MRPC", 5, 3),
    "cola": Case("glue/CoLA", 5, 3),
    "rte": Case("glue/RTE", 5, 3),
    "sts-b": Case("glue/STS-B", 5, 3),
    "crowdflower_corporate_messaging": Case("extra/crowdflower_corporate_messaging", 5, 3),
    "crowdflower_primary_emotions": Case("extra/crowdflower_primary_emotions", 10, 3),
    "20_newsgroups": Case("extra/20_newsgroups", 2, 1),
}
# A rate of its own for each kind of method; docs/results.md says how they were found.
SMALL, LARGE = "--learning_rate=1e-3", "--learning_rate=1e-4"
METHODS = {
    "full": ["--tuning=full", LARGE],
    "adapters 64": ["--adapter_size=64", SMALL],
    "adapters 8": ["--adapter_size=8", SMALL],
    "adapters 256": ["--adapter_size=256", SMALL],
    "pfeiffer 64": ["--adapter=pfeiffer", SMALL],
    "top_k 1": ["--tuning=top_k", "--top_k=1", LARGE],
    "top_k 2": ["--tuning=top_k", "--top_k=2", LARGE],
    "top_k 3": ["--tuning=top_k", "--top_k=3", LARGE],
    "layer_norm": ["--tuning=layer_norm", SMALL],
    "head": ["--tuning=head", SMALL],
}
COMPARED = ("full", "adapters 64")
ABLATED = ("mrpc", "cola", "sts-b")


def plan():
    """(task, method, seed) of every run, the comparison first."""
    runs = [(task, method, seed) for seed in range(3) for task, case in TASKS.items()
            for method in COMPARED if seed < case.seeds]
    runs += [(task, method, 0) for task in ABLATED for method in METHODS
             if method not in COMPARED]
    return sorted(runs, key=lambda run: run[0] == "20_newsgroups")  # Hours; last.


def read_lines():
    """The rows so far, by (task, method, seed)."""
    text = LINES.read_text() if LINES.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    return {(row["task"], row["method"], row["seed"]): row for row in rows}


def command(task, method, seed, data_dir="DATA", output_dir="OUT"):
    """The command line of a run."""
    case = TASKS[task]
    return ["run_classifier.py", f"--task_name={task}",
            f"--data_dir={os.path.join(data_dir, case.folder)}", *COMMON,
            f"--num_train_epochs={case.epochs}", *METHODS[method], f"--seed={seed}",
            f"--output_dir={output_dir}"]


def run(task, method, seed, core):
    """Runs one case on one core and adds its line."""
    print("*****", task, method, seed, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, *command(task, method, seed, FLAGS.data_dir, folder)],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                       preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        record = json.loads(pathlib.Path(folder, "run.json").read_text())
    examples = record["global_step"] * record["flags"]["train_batch_size"]
    row = {
        "task": task, "method": method, "seed": seed,
        "command": shlex.join(["python", *command(task, method, seed)]),
        "eval": record["eval"], "trained": record["parameters"]["trained"],
        "total": record["parameters"]["total"], "steps": record["global_step"],
        # Of one core: hardly changed by what else the machine does.
        "cpu_seconds": round(record["train_cpu_seconds"], 1),
        "examples_per_cpu_second": round(examples / record["train_cpu_seconds"], 1),
        "examples": record["examples"], "data_sha256": record["data_sha256"],
        "versions": record["versions"], "code": _revision(),
    }
    LINES.parent.mkdir(exist_ok=True)
    with LINES.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _revision():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() or None


def run_missing():
    """Runs what has no line yet."""
    there = read_lines()
    missing = [key for key in plan() if key not in there and key[0] in (FLAGS.only or TASKS)]
    cores = queue.Queue()
    for core in range(FLAGS.workers):
        cores.put(core)

    def on_a_free_core(key):
        core = cores.get()
        try:
            run(*key, core)
        finally:
            cores.put(core)

    with futures.ThreadPoolExecutor(FLAGS.workers) as pool:
        for done in [pool.submit(on_a_free_core, key) for key in missing]:
            done.result()


def main(_):
    if not FLAGS.table:
        run_missing()


if __name__ == "__main__":
    app.run(main)
