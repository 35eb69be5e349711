"""SQuAD training with batches of similar length and with batches of one fixed length.

    python -m benchmarks.buckets --data_dir=FOLDER    # with train-v1.1.json

Prints questions per second of CPU time of both, alternating, and their ratio.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measure(data_dir, questions, *more):
    """Measures questions per second of CPU time and peak MB of one short training."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable,
                "run_squad.py",
                "--do_train",
                f"--train_file={data_dir}/train-v1.1.json",
                f"--max_train_examples={questions}",
                "--num_train_epochs=1",
                "--train_batch_size=32",
                "--max_seq_length=384",
                f"--output_dir={folder}",
                *more,
            ],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        record = json.loads(pathlib.Path(folder, "run.json").read_text())
    question_count = record["global_step"] * record["flags"]["train_batch_size"]
    return question_count / record["train_cpu_seconds"], record["peak_memory_mb"]


def main():
    """Measures both and prints the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="Folder with train-v1.1.json.")
    parser.add_argument("--questions", type=int, default=1600, help="To train on, for one epoch.")
    parser.add_argument("--rounds", type=int, default=2, help="Turns of each.")
    arguments = parser.parse_args()
    ways = {"buckets": [], "fixed length": ["--pad_to=0"]}
    speeds = {name: [] for name in ways}
    for _ in range(arguments.rounds):
        for name, more in ways.items():
            speed, memory = measure(arguments.data_dir, arguments.questions, *more)
            speeds[name].append(speed)
            print(f"{name}: {speed:.2f} questions/s of one core, {memory:.0f} MB", flush=True)
    buckets, fixed = (statistics.median(speeds[name]) for name in ways)
    print(f"ratio {buckets / fixed:.2f}")


if __name__ == "__main__":
    main()
