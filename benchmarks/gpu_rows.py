"""The rows of `benchmarks.gpu`: functions that return what they measure.

    python -m benchmarks.gpu_rows FUNCTION '{"KEYWORD": VALUE, ...}'

prints a JSON line. `options` are those of the command, with `work`, a folder for this run.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

SIZES = {  # Hidden size, layers, heads, inner size.
    "tiny": (16, 2, 2, 32),
    "minilm": (384, 6, 12, 1536),
    "base": (768, 12, 12, 3072),
}
VOCABULARY, BATCH, BOTTLENECK = 30522, 32, 64
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def count(options, usual, tiny):
    """Returns a number of steps or rows."""
    return tiny if options["tiny"] else usual


def base_folder(name, options):
    """Makes a folder with the configuration and the vocabulary of a base without weights."""
    name = "tiny" if options["tiny"] else name
    folder = pathlib.Path(options["work"], name)
    folder.mkdir(exist_ok=True)
    hidden, layers, heads, inner = SIZES[name]
    config = {
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "hidden_act": "gelu",
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    }
    words = [f"w{number}" for number in range(VOCABULARY - len(SPECIAL))]
    (folder / "bert_config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *words]) + "\n")
    return folder


def run_command(*flags, environ=None):
    """Runs `run_classifier.py`; returns its seconds."""
    start = time.monotonic()
    subprocess.run(
        [sys.executable, "run_classifier.py", *flags],
        env=os.environ | (environ or {}),
        check=True,
        stdout=sys.stderr,
    )
    return time.monotonic() - start


def step(base, length, cache, options, xla="", **flags):
    """Trains a base on texts of one length; returns milliseconds of a step, first step, memory."""
    folder, work = base_folder(base, options), pathlib.Path(options["work"])
    caches = work / ("kept" if cache in ("kept", "warm") else f"cold_{os.getpid()}")
    os.environ["ADAPTER_BERT_CACHE"] = str(caches)
    if xla == "triton":
        os.environ["XLA_FLAGS"] = "--xla_gpu_enable_triton_gemm=true"
    steps = count(options, 80, 6)
    table, rng = work / f"texts_{length}", np.random.default_rng(0)
    table.mkdir(exist_ok=True)
    rows = [f"{' '.join(f'w{n}' for n in rng.integers(0, 30000, length - 2))}\t{i % 2}"
            for i in range(BATCH * steps)]  # fmt: skip
    (table / "train.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    values = {
        "task_name": "tsv",
        "data_dir": str(table),
        "text_a_column": "text",
        "label_column": "label",
        "do_train": True,
        "dev_share": 0.0,
        "num_train_epochs": 1.0,
        "train_batch_size": BATCH,
        "learning_rate": 1e-4,
        "max_seq_length": length,
        "adapter_size": BOTTLENECK,
        "bert_config_file": str(folder / "bert_config.json"),
        "vocab_file": str(folder / "vocab.txt"),
        "output_dir": str(work / f"out_{os.getpid()}"),
        "report": False,
        **flags,
    }
    return run_here(values, steps)


def run_here(values, steps):
    """Runs the command's job in this process; returns its figures and TensorFlow's."""
    from adapter_bert_tf.cli import compilation_cache
    from adapter_bert_tf.cli.error_handling import before_tensorflow
    from adapter_bert_tf.config.run_config import RunConfig
    from adapter_bert_tf.config.setting import Command

    before_tensorflow()
    compilation_cache.use()
    import contextlib

    import tensorflow as tf

    from adapter_bert_tf.jobs import classification

    with contextlib.redirect_stdout(sys.stderr):
        classification.run(RunConfig.from_values(Command.CLASSIFIER, values, values))
    record = json.loads(pathlib.Path(values["output_dir"], "run.json").read_text())
    rate = record["examples_per_second"]
    gpus = tf.config.list_physical_devices("GPU")
    peak = tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**20 if gpus else None
    return {
        "device": tf.config.experimental.get_device_details(gpus[0])["device_name"]
        if gpus
        else "CPU",
        "ms": 1000 * BATCH / rate,
        "first_step_seconds": record["train_seconds"] - (steps - 1) * BATCH / rate,
        "peak_mb": peak,
        "compiled": record["compiled"],
    }


def command(options, **flags):
    """Trains and evaluates MRPC by the command; returns its seconds and metrics."""
    work, steps = pathlib.Path(options["work"]), count(options, 5, 1)
    output = pathlib.Path(tempfile.mkdtemp(dir=work))
    data = options["data_dir"]
    where = ["--task_name=mrpc", f"--data_dir={data}/glue/MRPC"]
    where = where if data else ["--task_name=paraphrase"]
    limits = ["--max_train_examples=64", "--adapter_size=4"] if options["tiny"] else []
    seconds = run_command(
        *where,
        *("--do_train", "--do_eval", "--learning_rate=1e-3", f"--num_train_epochs={steps}"),
        *(f"--{name}={value}" for name, value in flags.items()),
        *limits,
        f"--output_dir={output}",
        environ={"ADAPTER_BERT_CACHE": str(work / "mrpc_cache")},
    )
    record = json.loads((output / "run.json").read_text())
    digest = hashlib.sha256((output / "adapter" / "adapter.safetensors").read_bytes()).hexdigest()
    return {"command_seconds": seconds, "eval": record["eval"], "sha256": digest}


def deterministic(options):
    """Two equal runs with `--deterministic`; returns whether their adapters are equal."""
    runs = [command({**options, "data_dir": ""}, deterministic=True) for _ in range(2)]
    seconds = [run["command_seconds"] for run in runs]
    return {"equal": runs[0]["sha256"] == runs[1]["sha256"], "command_seconds": seconds}


def trials(options):
    """Four seeds one after the other and at once; returns the seconds and whether all is equal."""
    work = pathlib.Path(options["work"])
    results, seconds = [], []
    for at_once in (1, 4):
        out = work / f"trials_{at_once}"
        flags = ["--task_name=paraphrase", "--do_train", "--do_eval", "--num_train_epochs=2"]
        several = ["--num_trials=4", f"--parallel_trials={at_once}", f"--output_dir={out}"]
        seconds.append(run_command(*flags, *several))
        results.append((out / "eval_results.txt").read_text())
    return {"trial_seconds": seconds, "equal": results[0] == results[1]}


def _child(function, options, *arguments, on_cpu=False):
    """Runs a function of `gpu_children`, with GPUs if there are any; returns its JSON."""
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"} if on_cpu else {}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_children", function, *arguments],
        env=os.environ | hidden | {"TINY": "1" * options["tiny"]},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _children(function, options, *arguments):
    """Runs a function of `gpu_children` without GPUs, then with them; returns their JSON."""
    return [_child(function, options, *arguments, on_cpu=on_cpu) for on_cpu in (True, False)]


def numbers(options):
    """Logits and the first losses of a CPU and of a GPU in float32 without TF32."""
    cpu, gpu = _children("numbers", options, f"{options['work']}/weights.npz")
    return {
        name: float(np.abs(np.array(cpu[name]) - np.array(gpu[name])).max())
        for name in ("logits", "losses")
    } | {"devices": [cpu["device"], gpu["device"]]}


def methods(options):
    """One compiled step of each method on the GPU, and the same without XLA."""
    found: dict = _child("methods", options)
    return found


def saved_model(options):
    """Answers of SavedModels that a CPU and a GPU exported, on both; the largest difference."""
    folder = f"{options['work']}/exported"
    _children("export", options, folder)
    answers = np.array(_children("answer", options, folder))
    return {"difference": float(np.abs(answers - answers[0]).max()), "answers": answers.size}


def score(options):
    """Rows/s of `Predictor` from texts, with an untrained adapter, after the first answers."""
    from benchmarks import gpu_children

    return gpu_children.score(count(options, 20_000, 64), options["tiny"])


def peer_step(base, length, mode, options):
    """Milliseconds of a training step of `adapters`."""
    from benchmarks import gpu_peer

    sizes = SIZES["tiny" if options["tiny"] else base]
    return gpu_peer.step(sizes, length, mode, count(options, 40, 2))


def peer_score(options):
    """Rows/s of `adapters` in bfloat16, from word pieces of the lengths of `score`'s texts."""
    from benchmarks import gpu_peer

    return gpu_peer.score(SIZES["tiny" if options["tiny"] else "minilm"],
                          count(options, 20_000, 64))  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))
