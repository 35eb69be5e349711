"""Examples/s of the input pipeline alone and of training, to see whether the input keeps up.

    python -m benchmarks.input_pipeline                       # the shipped data
    python -m benchmarks.input_pipeline --data_dir=FOLDER     # FOLDER/glue/MRPC, FOLDER/squad

Batches of similar length, as on CPU and GPU, and of one fixed length, as on TPU; for one host, and
for one of four hosts with eight replicas each, which prepares only its own rows. The pipeline runs
alone on the machine; in training it shares the cores with the step.
"""

import argparse
import os
import pathlib
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import adapter_bert_tf as abt
from adapter_bert_tf.data import batches
from adapter_bert_tf.data.examples import read_examples
from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.data.questions import records, spans
from adapter_bert_tf.data.questions.squad import read_articles, read_questions
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import find_task
from adapter_bert_tf.training.loop import TrainingSettings, train

BATCH, STEPS = 32, 12
SHIPPED = pathlib.Path(abt.__file__).parent / "data" / "shipped"
ONE_OF_FOUR = HostShard(replicas=32, first=8, local=8)
ROW = "{:<16}{:<10}{:>14}{:>18}{:>14}{:>8}"


def classification(base, folder):
    """Returns (model, function that makes batches) for sentence pairs of at most 128 pieces."""
    task = find_task("mrpc" if folder else "demo_paraphrase")
    examples = read_examples(task, f"{folder}/glue/MRPC" if folder else task.folder, ["train"])[
        "train"
    ]
    labels = table_type(task.task_type).encode(task, examples)
    features = batches.tokenize(examples, abt.TextEncoder(base.vocabulary, 128), labels)

    def make(steps, pad_to, start=0, share=WHOLE_BATCH):
        return batches.train_batches(
            features, BATCH, steps, 0, 128, pad_to, start=start, shard=share
        )

    return abt.Classifier(base.build_encoder(abt.PRESETS["houlsby"]), 2), make


def question_answering(base, folder):
    """Returns (model, function that makes batches) for windows of at most 384 pieces."""
    path = f"{folder}/squad/train-v1.1.json" if folder else str(SHIPPED / "squad" / "train.json")
    questions = read_questions(read_articles(path), path)[:1000]
    settings = spans.SpanSettings(384, 128, 64)
    windows = records.cached_records(
        tempfile.mkdtemp(),
        {"benchmark": path},
        lambda: spans.training_windows(questions, abt.TextEncoder(base.vocabulary, 384), settings),
    )

    def make(steps, pad_to, start=0, share=WHOLE_BATCH):
        return records.train_batches(
            windows, BATCH, steps, 0, 384, pad_to, start=start, shard=share
        )

    return SpanLabeler(base.build_encoder(abt.PRESETS["houlsby"])), make


def pipeline_rate(make, pad_to, share=WHOLE_BATCH, steps=200):
    """Measures examples/s of the pipeline, in global batches, without the first tenth."""
    skipped, start = steps // 10 * share.local, None
    for number, _ in enumerate(make(steps, pad_to, share=share)):
        if number + 1 == skipped:
            start = time.perf_counter()
    return (steps - steps // 10) * BATCH / (time.perf_counter() - start)


def training_rate(model, make, pad_to):
    """Measures examples/s of training, with the input pipeline."""
    trained = abt.select_trained(model, abt.Tuning())
    settings = TrainingSettings(STEPS, BATCH, 1e-3)
    return train(
        model, trained, lambda start, share: make(STEPS, pad_to, start, share), settings
    ).examples_per_second


def main():
    """Prints a row for each task and type of batches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir")
    folder = parser.parse_args().data_dir
    base, lines = abt.load_base(), []
    for name, task in (("classification", classification), ("SQuAD", question_answering)):
        model, make = task(base, folder)
        for lengths, pad_to in (("similar", 8), ("fixed", None)):
            one_host, shared = (
                pipeline_rate(make, pad_to, share) for share in (WHOLE_BATCH, ONE_OF_FOUR)
            )
            step = training_rate(model, make, pad_to)
            lines.append(
                ROW.format(
                    name,
                    lengths,
                    f"{one_host:,.0f}",
                    f"{shared:,.0f}",
                    f"{step:,.0f}",
                    f"{one_host / step:.0f}x",
                )
            )
    print(ROW.format("examples/s", "lengths", "pipeline", "one host of 4", "training", "ratio"))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
