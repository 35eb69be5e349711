"""The cases of docs/results.md: tasks, methods, and the command line of each run."""

import collections
import os

# float32 on all machines, also where it is not the default; the last of equal flags counts.
COMMON = ["--do_train", "--do_eval", "--eval_batch_size=32", "--precision=float32"]
SQUAD = "squad"

# Epochs are of full and top-k fine-tuning, and of the methods that train little.
Case = collections.namedtuple("Case", "folder epochs small_epochs seeds metric")
TASKS = {
    "mrpc": Case("glue/MRPC", 5, 5, 3, "accuracy"),
    "cola": Case("glue/CoLA", 5, 10, 3, "mcc"),
    "rte": Case("glue/RTE", 5, 10, 3, "accuracy"),
    "sts-b": Case("glue/STS-B", 5, 5, 3, "spearman"),
    "mnli": Case("glue/MNLI-subset", 5, 5, 1, "accuracy"),
    "crowdflower_corporate_messaging": Case(
        "extra/crowdflower_corporate_messaging", 5, 10, 3, "accuracy"
    ),
    "crowdflower_primary_emotions": Case(
        "extra/crowdflower_primary_emotions", 10, 20, 3, "accuracy"
    ),
    "20_newsgroups": Case("extra/20_newsgroups", 2, 3, 1, "accuracy"),
    SQUAD: Case("squad", 2, 3, 3, "f1"),
}
CLASSIFICATION = [task for task in TASKS if task != SQUAD]
# A rate of its own for each kind of method; docs/results.md says how it was found.
SMALL, WIDE, LARGE = (f"--learning_rate={rate}" for rate in ("1e-3", "3e-4", "1e-4"))
METHODS = {
    "full": ["--tuning=full", LARGE],
    "adapters 64": ["--adapter_size=64", SMALL],
    "adapters 2": ["--adapter_size=2", SMALL],
    "adapters 12": ["--adapter_size=12", SMALL],
    "adapters 8": ["--adapter_size=8", SMALL],
    "adapters 256": ["--adapter_size=256", WIDE],
    "pfeiffer 64": ["--adapter=pfeiffer", SMALL],
    "top_k 1": ["--tuning=top_k", "--top_k=1", LARGE],
    "top_k 2": ["--tuning=top_k", "--top_k=2", LARGE],
    "top_k 3": ["--tuning=top_k", "--top_k=3", LARGE],
    "layer_norm": ["--tuning=layer_norm", SMALL],
    "head": ["--tuning=head", SMALL],
    "adapters 64, bfloat16_base": ["--adapter_size=64", "--precision=bfloat16_base", SMALL],
    "adapters 64, upper half": ["--adapter_size=64", "--frozen_layers=3", SMALL],
}
COMPARED = ("full", "adapters 64")
# Of the size that HyperFormer's are on this base; of the tasks of `benchmarks.several_tasks`.
AS_GENERATED, TOGETHER = "adapters 12", ("cola", "mrpc", "rte", "sts-b", "mnli")
ABLATED = ("mrpc", "cola", "sts-b")
FASTER = ("adapters 64, bfloat16_base", "adapters 64, upper half")  # What they cost, on MRPC.


def plan():
    """Returns (task, method, seed) of every run, the comparison first, the longest runs last."""
    runs = [
        (task, method, seed)
        for seed in range(3)
        for task in CLASSIFICATION
        for method in COMPARED
        if seed < TASKS[task].seeds
    ]
    runs += [
        (task, method, 0)
        for task in ABLATED
        for method in METHODS
        if method not in (*COMPARED, *FASTER, "adapters 2", AS_GENERATED)
    ]
    runs += [("mrpc", method, seed) for seed in range(3) for method in FASTER]
    runs += [(task, AS_GENERATED, 0) for task in TOGETHER]
    runs += [(SQUAD, method, 0) for method in (*COMPARED, "adapters 8", "adapters 2")]
    runs += [(SQUAD, "adapters 64", seed) for seed in (1, 2)]
    return sorted(runs, key=lambda run: run[0] == "20_newsgroups" or run[0] == SQUAD)


def command(task, method, seed, data_dir="DATA", output_dir="OUT"):
    """Returns the command line of a run."""
    case = TASKS[task]
    epochs = case.epochs if LARGE in METHODS[method] else case.small_epochs
    folder = os.path.join(data_dir, case.folder)
    if task == SQUAD:
        own = [
            "run_squad.py",
            f"--train_file={folder}/train-v1.1.json",
            f"--predict_file={folder}/dev-v1.1.json",
            "--max_seq_length=384",
            "--train_batch_size=12",
        ]
    else:
        own = [
            "run_classifier.py",
            f"--task_name={task}",
            f"--data_dir={folder}",
            "--max_seq_length=128",
            "--train_batch_size=32",
        ]
    return [
        *own,
        *COMMON,
        f"--num_train_epochs={epochs}",
        *METHODS[method],
        f"--seed={seed}",
        f"--output_dir={output_dir}",
    ]
