"""Writes the files beside it with the commands of a checkout; those here are of commit 8f28da2.

    git worktree add /tmp/old 8f28da2
    python -m tests.golden.written_before.make /tmp/old
    python -m tests.golden.written_before.make /tmp/newer runs_written_later    # the runs alone

To be started from the top of this repository, of which the base and the data come; everything else
is the checkout's work. Runs know their files by relative paths, and so go on in any copy.
"""

import csv
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import safetensors.numpy

from tests import support
from tests.runs import base_flags, sentence, write_mrpc

HERE = pathlib.Path(__file__).parent
COMMANDS = HERE / "commands.py"

BASE = base_flags("base")
SIZES = [*BASE, "--max_seq_length=16"]
MRPC = ["--task_name=mrpc", "--data_dir=mrpc", *SIZES]
TABLE = ["--task_name=tsv", "--data_dir=table", "--text_a_column=text", *SIZES]
SCORES = [*TABLE, "--label_column=score", "--regression"]
KINDS = [*TABLE, "--label_column=kind"]
SQUAD = [*BASE, "--max_seq_length=20", "--max_query_length=6", "--doc_stride=4"]
SQUAD_1 = [*SQUAD, "--train_file=squad/train.json", "--predict_file=squad/dev.json"]
SQUAD_2 = [
    *SQUAD,
    "--train_file=squad/train_2.json",
    "--predict_file=squad/dev_2.json",
    "--version_2_with_negative",
]
SMALL = "--adapter_size=8"
TRAIN = ["--do_train", "--train_batch_size=8", "--learning_rate=1e-2", "--num_train_epochs=20"]
TRAIN_SPANS = [
    "--do_train",
    "--train_batch_size=4",
    "--learning_rate=1e-2",
    "--num_train_epochs=40",
]

# A JSON file for --adapter.
VARIATION = {
    "bottleneck_size": 8,
    "layer_norm": True,
    "depth": 2,
    "layers": [1],
    "dropout": 0.1,
    "sublayers": ["attention"],
}
# Name of an adapter directory: script, flags of its data and base, flags of what is trained.
ADAPTERS = {
    "houlsby": ("run_classifier", MRPC, ["--adapter=houlsby"]),
    "adapter_bert": ("run_classifier", MRPC, ["--adapter=adapter_bert"]),
    "pfeiffer": ("run_classifier", MRPC, ["--adapter=pfeiffer"]),
    "parallel": ("run_classifier", MRPC, ["--adapter=parallel"]),
    "scaled_parallel": ("run_classifier", MRPC, ["--adapter=scaled_parallel"]),
    "variation": ("run_classifier", MRPC, ["--adapter=variation.json"]),
    "adapter_drop": ("run_classifier", MRPC, [SMALL, "--adapter_drop=1"]),
    "train_pooler": ("run_classifier", MRPC, [SMALL, "--train_pooler"]),
    "notrain_layer_norm": ("run_classifier", MRPC, [SMALL, "--notrain_layer_norm"]),
    "full": ("run_classifier", MRPC, ["--tuning=full"]),
    "top_k": ("run_classifier", MRPC, ["--tuning=top_k", "--top_k=1"]),
    "layer_norm": ("run_classifier", MRPC, ["--tuning=layer_norm"]),
    "layer_norm_and_pooler": ("run_classifier", MRPC, ["--tuning=layer_norm", "--train_pooler"]),
    "head": ("run_classifier", MRPC, ["--tuning=head"]),
    "float16": ("run_classifier", MRPC, [SMALL, "--adapter_dtype=float16"]),
    "bfloat16": ("run_classifier", MRPC, [SMALL, "--adapter_dtype=bfloat16"]),
    "scores": ("run_classifier", SCORES, [SMALL]),
    "scores_full": ("run_classifier", SCORES, ["--tuning=full"]),
    "kinds": ("run_classifier", KINDS, [SMALL]),
    "squad": ("run_squad", SQUAD_1, [SMALL]),
    "squad_full": ("run_squad", SQUAD_1, ["--tuning=full"]),
    "squad_2": ("run_squad", SQUAD_2, ["--adapter=pfeiffer", "--num_train_epochs=120"]),
}
# Name of a run that is stopped: script, flags, the signal.
SLOWLY = ["--learning_rate=1e-3", "--save_checkpoints_steps=10", SMALL, "--do_eval"]
STOPPED = [*MRPC, *TRAIN, *SLOWLY, "--num_train_epochs=10"]
STOPPED_SPANS = [*SQUAD_1, *TRAIN_SPANS, *SLOWLY, "--num_train_epochs=24"]
INTERRUPTED = {
    "interrupted": ("run_classifier", STOPPED, signal.SIGTERM),
    "squad_interrupted": ("run_squad", STOPPED_SPANS, signal.SIGKILL),
}
SHORT = [*MRPC, *TRAIN, "--num_train_epochs=4", "--do_eval", SMALL]
FINISHED = [*SHORT, "--do_predict", "--output_dir=out/finished"]
SWEEP = [*SHORT, "--num_trials=2", "--output_dir=out/sweep"]


def write_table(folder):
    """A table of one's own: a text, a score, and one of three kinds."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    for name, count in (("train", 48), ("dev", 16), ("test", 8)):
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["text", "score", "kind"])
            for i in range(count):
                text = sentence(rng) + " good" * (i % 4) + (" cat", " rain", " play")[i % 3]
                score = round(i % 4 + rng.normal() / 4, 2)
                rows.writerow([text, score, ("animal", "weather", "game")[i % 3]])


def write_squad(folder):
    """Questions whose answer is the word after `is`, in SQuAD's two versions."""
    rng = np.random.default_rng(2)
    folder.mkdir(exist_ok=True)
    for name, impossible in (("train", 0), ("dev", 0), ("train_2", 3), ("dev_2", 3)):
        articles = [
            article(rng, f"{name}-{i}", bool(impossible) and i % impossible == 0)
            for i in range(12 if "train" in name else 8)
        ]
        text = json.dumps({"version": "x", "data": articles}, indent=1)
        (folder / f"{name}.json").write_text(text + "\n")


def article(rng, name, impossible):
    """A context and one question about it."""
    first, last = sentence(rng).replace(" is", ""), sentence(rng)
    answer = rng.choice(["cat", "dog", "red house", "bad rain"])
    context = f"{first} , it {'was' if impossible else 'is'} {answer} . {last}"
    found = [{"text": str(answer), "answer_start": context.index(f" {answer} .") + 1}]
    question = {
        "id": name,
        "question": "who is it ?",
        "answers": [] if impossible else found,
        "is_impossible": impossible,
    }
    return {"title": name, "paragraphs": [{"context": context, "qas": [question]}]}


def write_inputs(folder):
    """The base, the data and the adapter's configuration."""
    support.write_google(folder / "base")
    write_mrpc(folder / "mrpc")
    write_table(folder / "table")
    write_squad(folder / "squad")
    (folder / "variation.json").write_text(json.dumps(VARIATION, indent=2) + "\n")


class Checkout:
    """The commands of a checkout, run in a folder.

    Args:
      path: of the checkout.
      folder: where they run.
    """

    def __init__(self, path, folder):
        self.path, self.folder = pathlib.Path(path).resolve(), folder
        self.environment = os.environ | {
            "PYTHONPATH": str(self.path),
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }

    def start(self, script, lines):
        """Starts command lines in one process; returns it."""
        return subprocess.Popen(
            [sys.executable, COMMANDS, script, json.dumps(lines)],
            cwd=self.folder,
            env=self.environment,
        )

    def run(self, lines):
        """Runs pairs of a script and its flags, those of one script in one process."""
        for script in ("run_classifier", "run_squad"):
            process = self.start(script, [flags for name, flags in lines if name == script])
            if process.wait():
                sys.exit(f"{script} failed.")

    def stop_halfway(self, script, flags, out, number):
        """Runs until a checkpoint of step 30, and stops it; returns the step that it is left at."""
        for _ in range(20):
            shutil.rmtree(out, ignore_errors=True)
            process = self.start(script, [flags])
            while process.poll() is None and latest_step(out) < 30:
                time.sleep(0.005)
            process.send_signal(number)
            if process.wait() in (-number, 128 + number) and not (out / "adapter").exists():
                return latest_step(out)
        sys.exit("The run was always faster than its signal.")

    def commit(self):
        """Of the checkout."""
        return subprocess.check_output(
            ["git", "-C", self.path, "rev-parse", "HEAD"], text=True
        ).strip()


def latest_step(out):
    """Of the checkpoints of a run; 0 if there is none."""
    names = [path.stem for path in (out / "checkpoints").glob("ckpt-*.index")]
    return max((int(name.removeprefix("ckpt-")) for name in names), default=0)


def train_adapters(checkout):
    """Trains all adapters; returns, by name, the script and the flags that evaluate each."""
    checkout.run([training(name) for name in ADAPTERS])
    lines = {name: evaluation(name) for name in ADAPTERS}
    checkout.run([(script, [*flags, "--do_predict"]) for script, flags in lines.values()])
    return lines


def training(name):
    """The script and the flags that train an adapter."""
    script, data, what = ADAPTERS[name]
    steps = TRAIN_SPANS if script == "run_squad" else TRAIN
    places = [f"--output_dir=trained/{name}", f"--adapter_dir=adapters/{name}"]
    return script, [*data, *steps, *what, *places]


def evaluation(name):
    """The script and the flags that evaluate an adapter."""
    script, data, _ = ADAPTERS[name]
    data = [flag for flag in data if not flag.startswith("--train_file")]
    places = [f"--output_dir=again/{name}", f"--adapter_dir=adapters/{name}"]
    return script, [*data, "--do_eval", *places]


def outcome(folder):
    """What an evaluation says: its metrics, and predictions of the test set or of all questions."""
    lines = (folder / "eval_results.txt").read_text().splitlines()
    found = {
        "results": {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    }
    if (folder / "test_results.tsv").exists():
        rows = (folder / "test_results.tsv").read_text().splitlines()
        found["predictions"] = [[float(value) for value in row.split("\t")] for row in rows]
    if (folder / "predictions.json").exists():
        found["answers"] = json.loads((folder / "predictions.json").read_text())
    if (folder / "null_odds.json").exists():
        found["null_odds"] = json.loads((folder / "null_odds.json").read_text())
    if (folder / "nbest_predictions.json").exists():
        best = json.loads((folder / "nbest_predictions.json").read_text())
        found["best"] = {
            name: [rows[0]["start_logit"], rows[0]["end_logit"]] for name, rows in best.items()
        }
    return found


def interrupt(checkout, folder):
    """Stops the runs halfway, and lets a second one of each come to its end."""
    stopped = {}
    for name, (script, flags, number) in INTERRUPTED.items():
        line = [*flags, f"--output_dir=out/{name}"]
        step = checkout.stop_halfway(script, line, folder / "out" / name, number)
        stopped[name] = {"script": script, "flags": line, "step": step}
    checkout.run(
        [
            (script, [*flags, f"--output_dir=whole/{name}"])
            for name, (script, flags, _) in INTERRUPTED.items()
        ]
    )
    for name, values in stopped.items():
        (folder / "uninterrupted" / name).mkdir(parents=True)
        path = folder / "uninterrupted" / name / "adapter.safetensors"
        shutil.copy(folder / "whole" / name / "adapter" / "adapter.safetensors", path)
        values |= digests(path) | outcome(folder / "whole" / name)
        assert values["step"] < values["results"]["global_step"]
    return stopped


def digests(path):
    """SHA-256 of a file of weights, and of its arrays in the order of their names."""
    arrays = safetensors.numpy.load_file(path)
    in_order = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    return {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "arrays_sha256": hashlib.sha256(in_order).hexdigest(),
    }


def make(checkout, folder, only_runs):
    """Makes everything in an empty folder, or what the runs need and leave."""
    write_inputs(folder)
    lines = {} if only_runs else train_adapters(checkout)
    adapters = {
        name: {"script": script, "flags": flags} | outcome(folder / "again" / name)
        for name, (script, flags) in lines.items()
    }
    stopped = interrupt(checkout, folder)
    finished = [("run_classifier", FINISHED), ("run_classifier", SWEEP)]
    checkout.run(finished[:1] if only_runs else finished)
    expected = {
        "commit": checkout.commit(),
        "adapters": adapters,
        "interrupted": stopped,
        "finished": FINISHED,
        "sweep": SWEEP,
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def keep(folder, target):
    """Puts what the tests need into a folder."""
    for name in ("events.out.tfevents.*", ".lock", "report.html"):
        for path in folder.rglob(name):
            path.unlink()
    for path in (folder / name for name in ("trained", "again", "whole")):
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(target / path.name, ignore_errors=True)
    shutil.copytree(folder, target, dirs_exist_ok=True)


def main():
    """Makes the files anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(Checkout(sys.argv[1], folder), folder, only_runs=len(sys.argv) > 2)
        keep(folder, HERE.parent / sys.argv[2] if len(sys.argv) > 2 else HERE)


if __name__ == "__main__":
    main()
