"""Training throughput: this project against the PyTorch library `adapters`, on one machine.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.throughput --data_dir=GLUE/MRPC

Both train a Houlsby-type adapter of size 64 on the same MiniLM weights and the same sentence pairs,
batch 32, at most 128 word pieces, float32, input pipeline included; PyTorch pads each batch to its
longest example. They take turns, each time in a fresh process, and the first steps (compilation)
are not counted.
"""

import json
import os
import statistics
import subprocess
import sys
import time

from absl import app, flags

flags.DEFINE_string("data_dir", None, "Folder of MRPC. Default: the shipped paraphrase task.")
flags.DEFINE_integer("steps", 114, "Counted steps a turn; 114 are one epoch of MRPC.")
flags.DEFINE_integer("rounds", 3, "Turns of each.")
flags.DEFINE_enum("worker", None, ["ours", "pytorch"], "Internal: measure one and print JSON.")
FLAGS = flags.FLAGS

BATCH_SIZE, MAX_SEQ_LENGTH, WARMUP_STEPS, SIZE = 32, 128, 8, 64


def training_examples():
    """The training pairs and labels."""
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.tasks import find_task

    task = find_task("mrpc" if FLAGS.data_dir else "demo_paraphrase")
    return read_examples(task, FLAGS.data_dir or task.folder, ["train"])["train"]


def measure_ours():
    """Examples/s of `training.loop.train`."""
    import adapter_bert_tf as abt
    from benchmarks import measuring

    base = abt.load_base()
    model = abt.Classifier(base.build_encoder(abt.AdapterConfig(bottleneck_size=SIZE)), 2)
    abt.select_trained(model, abt.Tuning())
    features = measuring.features(training_examples(), base, MAX_SEQ_LENGTH)
    return measuring.rate(model, features, BATCH_SIZE, MAX_SEQ_LENGTH, WARMUP_STEPS, FLAGS.steps)


def measure_pytorch():
    """Examples/s of `adapters` with a plain, careful PyTorch loop."""
    import adapters
    import torch
    import transformers

    from adapter_bert_tf.base import load_base

    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(0)
    folder = os.path.dirname(load_base().weights_path)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    model = adapters.BertAdapterModel.from_pretrained(folder)
    config = adapters.DoubleSeqBnConfig(reduction_factor=model.config.hidden_size / SIZE)
    model.add_adapter("task", config=config)
    model.add_classification_head("task", num_labels=2)
    model.train_adapter("task")
    model.train()

    examples = training_examples()
    encoded = tokenizer(
        examples.text_a, examples.text_b, truncation=True, max_length=MAX_SEQ_LENGTH
    )
    rows = [
        {name: encoded[name][i] for name in encoded} | {"labels": int(examples.labels[i])}
        for i in range(len(examples))
    ]
    loader = torch.utils.data.DataLoader(
        rows,
        batch_size=BATCH_SIZE,
        shuffle=True,
        drop_last=True,
        collate_fn=transformers.DataCollatorWithPadding(tokenizer),
    )
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    done, began = 0, None
    while True:
        for batch in loader:
            optimizer.zero_grad()
            model(**batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            done += 1
            if done == WARMUP_STEPS:
                began = time.perf_counter()
            if done == WARMUP_STEPS + FLAGS.steps:
                return FLAGS.steps * BATCH_SIZE / (time.perf_counter() - began)


def run_worker(name):
    """Measures in a fresh process."""
    module = ["-m", "benchmarks.throughput"]
    command = [sys.executable, *module, f"--worker={name}", f"--steps={FLAGS.steps}"]
    if FLAGS.data_dir:
        command.append(f"--data_dir={FLAGS.data_dir}")
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])


def main(_):
    if FLAGS.worker:
        measure = measure_ours if FLAGS.worker == "ours" else measure_pytorch
        print(json.dumps(measure()))
        return
    rates = {"ours": [], "pytorch": []}
    for turn in range(FLAGS.rounds):
        for name, found in rates.items():
            found.append(run_worker(name))
            print(f"round {turn + 1}  {name:<8} {found[-1]:7.1f} examples/s", flush=True)
    medians = {name: statistics.median(found) for name, found in rates.items()}
    print(
        f"median   ours {medians['ours']:.1f}  pytorch adapters {medians['pytorch']:.1f}  "
        f"ratio {medians['ours'] / medians['pytorch']:.2f}"
    )


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    app.run(main)
