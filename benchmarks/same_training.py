"""Whether two versions of the code train to the same bytes.

    python -m benchmarks.same_training --revision=COMMIT [--one_task]

Each case is a short run on the shipped texts and the default base, with the code of the revision,
in its own worktree, and with the current code. If all weights and results are equal, a line in
benchmarks/results/training_code records that the digests of both codes mean the same training. Rows
that were measured with one need not be measured again for the other.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import runner, training_code

SHIPPED = training_code.PACKAGE / "data" / "shipped"
SHORT = ["--do_train", "--do_eval", "--max_seq_length=32", "--train_batch_size=16"]
SHORT += ["--num_train_epochs=0.5", "--seed=1"]
FACTS = ["run_classifier.py", "--task_name=demo_factuality", *SHORT]
PAIRS = ["run_classifier.py", "--task_name=demo_paraphrase", *SHORT]
SCORES = ["run_classifier.py", "--task_name=tsv", f"--data_dir={SHIPPED / 'factuality'}"]
SCORES += ["--text_a_column=sentence", "--label_column=label", "--regression", *SHORT]
QUESTIONS = ["run_squad.py", f"--train_file={SHIPPED / 'squad/train.json'}", *SHORT]
QUESTIONS += [f"--predict_file={SHIPPED / 'squad/dev.json'}", "--max_query_length=16"]
QUESTIONS += ["--doc_stride=8"]
BOTH = ["run_classifier.py", "--task_name=demo_factuality,demo_paraphrase", *SHORT]
ONE_TASK = {
    "adapters": [*FACTS, "--learning_rate=1e-3"],
    "adapters of the original": [*FACTS, "--adapter=adapter_bert", "--optimizer=adapter_bert"],
    "pfeiffer, pooler frozen": [*PAIRS, "--adapter=pfeiffer", "--notrain_pooler"],
    "adapters on a subset": [*PAIRS, "--max_train_examples=100", "--num_train_epochs=3"],
    "adapters and scores": SCORES,
    "adapters and questions": QUESTIONS,
    "full": [*PAIRS, "--tuning=full", "--learning_rate=1e-4"],
    "top_k": [*FACTS, "--tuning=top_k", "--learning_rate=1e-4"],
    "layer_norm": [*FACTS, "--tuning=layer_norm"],
    "head": [*FACTS, "--tuning=head"],
}
SEVERAL_TASKS = {
    name: [*BOTH, f"--tuning={name}"]
    for name in (
        "multitask_full",
        "multitask_adapters",
        "per_task_adapters",
        "hyperformer",
        "hyperformer++",
        "pals",
    )
}
# On the shipped sentences, whose names are tagged; see `write_tagged`.
TAGGING = {
    "tags": ["run_tagger.py", *SHORT, "--learning_rate=1e-3"],
    "tags in windows": ["run_tagger.py", *SHORT, "--max_seq_length=12", "--stride=4"],
    "tags by argmax": ["run_tagger.py", *SHORT, "--decoding=argmax", "--tuning=full"],
}
CASES = ONE_TASK | SEVERAL_TASKS | TAGGING


def outcome(root, arguments):
    """The digest of the weights and the results of a command.

    Args:
      root: of the code that runs it.
      arguments: the script and its flags.
    """
    with tempfile.TemporaryDirectory() as folder:
        record = runner.run_record(
            [*arguments, f"--output_dir={folder}/out"], f"{folder}/out", root=root
        )
        config = json.loads(pathlib.Path(folder, "out/adapter/adapter_config.json").read_text())
    return {"weights": config["weights_sha256"], "eval": record["eval"]}


def write_tagged(folder):
    """Writes the shipped sentences, with capitals within them as names; returns the folder."""
    pathlib.Path(folder).mkdir()
    for split in ("train", "dev"):
        lines = (SHIPPED / "factuality" / f"{split}.tsv").read_text().splitlines()[1:]
        blocks = []
        for line in lines:
            words, tags = line.rpartition("\t")[0].split(), []
            for number, word in enumerate(words):
                inside = tags and tags[-1] != "O"
                is_name = number > 0 and word[0].isupper()
                tags.append(f"{'I' if inside else 'B'}-name" if is_name else "O")
            blocks.append("".join(f"{w}\t{t}\n" for w, t in zip(words, tags, strict=True)))
        pathlib.Path(folder, f"{split}.conll").write_text("\n".join(blocks))
    return folder


def digests(root):
    """Returns the digests of a root, from its own benchmarks.

    They are those of the code of one task, of several, and of tagging.
    """
    script = "import inspect, json; from benchmarks.training_code import digest; "
    script += "knows = 'of_several' in inspect.signature(digest).parameters; "
    script += "one = {'of_several': False} if knows else {}; "
    script += "tags = {'of_tagging': True} if knows else {}; "
    script += "print(json.dumps([digest(**one), digest(), digest(**one, **tags)]))"
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=root, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(process.stdout)


def find_differences(cases, other_root):
    """Returns the cases with different outcomes for the code of `other_root` and this one."""
    results = []
    for number, (name, arguments) in enumerate(cases.items(), 1):
        identical = outcome(other_root, arguments) == outcome(runner.ROOT, arguments)
        print(
            f"{number} of {len(cases)}, {name}: {'the same' if identical else 'DIFFERS'}",
            flush=True,
        )
        results += [] if identical else [name]
    return results


def compare(revision, one_task):
    """Runs the cases with both codes and records their equivalence.

    Single-task code comes first; what is already known to be equivalent is skipped.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = f"{folder}/tree"
        git = ["git", "-C", str(runner.ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", tree, revision], check=True)
        try:
            single_task, complete, tags = zip(digests(tree), digests(runner.ROOT), strict=True)
            identical = compare_cases(single_task, ONE_TASK, tree)
            if identical and not one_task:
                tagged = f"--data_dir={write_tagged(f'{folder}/tagged')}"
                compare_cases(tags, {name: [*w, tagged] for name, w in TAGGING.items()}, tree)
                compare_cases(complete, SEVERAL_TASKS, tree)
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)


def compare_cases(codes, cases, other_root):
    """Records and returns whether two codes train alike in all cases."""
    if codes[1] in training_code.equivalent_codes(codes[0]):
        return True
    identical = not find_differences(cases, other_root)
    if identical:
        training_code.record_equivalence(codes, list(cases))
    return identical


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        compare,
        lambda: None,
        revision=(None, "Commit to compare with."),
        one_task=(False, "Only the methods for one task."),
    )
