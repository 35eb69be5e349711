"""Trains a multi-label task from a CSV file, with cross-validation.

python examples/many_labels.py
"""

import csv
import pathlib
import subprocess
import sys

import adapter_bert_tf as abt

ROWS = [
    ("The train was late and the coach was dirty.", "delay|cleanliness"),
    ("We waited an hour.", "delay"),
    ("The seats were dirty.", "cleanliness"),
    ("A pleasant journey.", ""),
    ("Crumbs everywhere, and no one came to clean.", "cleanliness"),
    ("It left forty minutes late.", "delay"),
    ("Friendly staff and good coffee.", ""),
    ("Late again, and the toilets were filthy.", "delay|cleanliness"),
]
table = pathlib.Path("complaints", "complaints.csv")
table.parent.mkdir(exist_ok=True)
if not table.exists():
    with table.open("x", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "topics"])
        writer.writerows((f"{text} ({i})", topics) for i in range(5) for text, topics in ROWS)

COMMON = ["--task_name=tsv", "--data_dir=complaints", "--text_a_column=text", "--multi_label",
          "--label_column=topics", "--do_train", "--do_eval", "--max_seq_length=32",
          "--train_batch_size=8", "--num_train_epochs=4"]  # fmt: skip
COMMAND = [sys.executable, "-m", "adapter_bert_tf", "classify"]
subprocess.run([*COMMAND, *COMMON, "--folds=2", "--output_dir=out/folds"], check=True)
subprocess.run([*COMMAND, *COMMON, "--output_dir=out/complaints"], check=True)
print(abt.Predictor("out/complaints/adapter")("Two hours late, in a dirty coach."))
