"""Training speed of adapters with this project and with other libraries, on the same machine.

    make bench DATA=FOLDER                                          # this and other measurements
    .venv-parity/bin/python -m benchmarks.speed --data_dir=FOLDER   # measures what is missing
    python -m benchmarks.speed --table                              # only rewrites its page

FOLDER holds `glue/MRPC`, `glue/CoLA` and `squad`. All train the same MiniLM on the same
examples, batch 32, input pipeline included, at most 128 word pieces (SQuAD: 384); adapters have
size 64, LoRA rank 8 of queries and values. The peers pad each batch to its longest example. Each
measurement has its own process. They take turns, and the first steps are not counted.
"""

import collections
import dataclasses
import pathlib
import statistics
import tempfile

from benchmarks import ledger, measuring, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "speed",
    page=ROOT / "docs" / "performance.md",
    key=lambda row: (row["data"], row["system"], row["turn"]),
)
OURS, OURS_BF16, FULL = "ours", "ours, `--precision=bfloat16_base`", "ours, `--tuning=full`"
PEER, PEER_BF16, LORA = "`adapters`", "`adapters`, bfloat16 autocast", "`peft`, LoRA"
GARDEN = "Model Garden, everything trained"
# Upper half of the layers only; from the second epoch on, if their input is stored.
UPPER, KEPT = "ours, `--frozen_layers=3`", "ours, `--frozen_layers=3 --cache_frozen`"
FROZEN_LAYERS = {UPPER: 3, KEPT: 3}
# Systems by data; the first one is the reference.
CASES = {
    "mrpc": (PEER, OURS, OURS_BF16, PEER_BF16, LORA, FULL, GARDEN, UPPER, KEPT),
    "cola": (PEER, OURS),
    "squad": (PEER, OURS),
}
FOLDERS = {"mrpc": "glue/MRPC", "cola": "glue/CoLA", "squad": "squad"}
LENGTHS = collections.defaultdict(lambda: 128, squad=384)
STEPS = {"mrpc": 114, "cola": 267, "squad": 24}  # One epoch, and a part of one.
TURNS, BATCH, SIZE, WARMUP, QUESTIONS = 3, 32, 64, 8, 1200
PAD_TO = 2  # As runs have it on CPU.


def read(data, folder):
    """Reads the training examples of a classification task, or `Window`s of questions."""
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.data import examples
    from adapter_bert_tf.data.questions import spans, squad
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.tasks import find_task

    if data != "squad":
        return examples.read_examples(find_task(data), folder, ["train"])["train"]
    path = f"{folder}/train-v1.1.json"
    questions = squad.read_questions(squad.read_articles(path), path)[:QUESTIONS]
    settings = spans.SpanSettings(max_seq_length=LENGTHS[data])
    encoder = TextEncoder(load_base().vocabulary, LENGTHS[data])
    return list(spans.training_windows(questions, encoder, settings))


def measure(data, system, folder):
    """Measures examples/s and MB of training; runs in a separate process."""
    from adapter_bert_tf.output.provenance import peak_memory_mb

    row = read(data, folder)
    is_ours = system in (OURS, OURS_BF16, FULL, GARDEN, UPPER, KEPT)
    rate = (_ours if is_ours else _peer)(data, system, row)
    row = {"examples_per_second": rate, "peak_memory_mb": peak_memory_mb()}
    return row | measuring.describe_machine(_packages(is_ours, system))


def _packages(is_ours, system):
    if is_ours:
        return measuring.PACKAGES
    return ("torch", "transformers", "peft" if system == LORA else "adapters")


def _ours(data, system, examples):
    from adapter_bert_tf.base import load_base

    base, steps = load_base(), WARMUP + STEPS[data]
    with tempfile.TemporaryDirectory() as folder:
        model = _model(base, data, system)
        dataset = _fed(data, system, examples, base, steps, folder, model)
        return measuring.dataset_rate(model, dataset, BATCH, WARMUP, STEPS[data])


def _fed(data, system, examples, base, steps, folder, model):
    """The batches of `steps` steps; windows of questions are written into a folder."""
    from adapter_bert_tf.data import batches
    from adapter_bert_tf.data.questions import records
    from adapter_bert_tf.training import frozen_layers

    length = LENGTHS[data]
    if data == "squad":
        written = records.cached_records(folder, {}, lambda: examples)
        return records.train_batches(written, BATCH, steps, 0, length, PAD_TO)
    features = measuring.features(examples, base, length)
    if system == KEPT:
        model.compile()
        outputs = frozen_layers.frozen_outputs(model, features, BATCH, length, PAD_TO)
        features = dataclasses.replace(features, frozen=outputs)
    pad_to = None if system == GARDEN else PAD_TO  # It knows one length for all.
    return batches.train_batches(features, BATCH, steps, 0, length, pad_to)


def _model(base, data, system):
    import adapter_bert_tf as abt
    from adapter_bert_tf.heads.span_labeler import SpanLabeler

    if system == GARDEN:
        return _garden(base)
    below = FROZEN_LAYERS.get(system, 0)
    layers = tuple(range(below, base.config.num_layers))
    config = None if system == FULL else abt.AdapterConfig(bottleneck_size=SIZE, layers=layers)
    product = "bfloat16" if system == OURS_BF16 else None
    encoder = base.new_encoder(config, product_dtype=product, frozen_layers=below)
    model = SpanLabeler(encoder) if data == "squad" else abt.Classifier(encoder, 2)
    base.assign(model.named_variables())
    method = "full" if system == FULL else "adapters"
    abt.select_trained(model, abt.Tuning(method, frozen_layers=below))
    return model


def _garden(base):
    """Model Garden's own classifier, as its guide trains it, with our optimizer and loss."""
    from official.nlp.modeling import models, networks

    from adapter_bert_tf.heads.losses import sparse_cross_entropy

    sizes = base.config
    encoder = networks.BertEncoderV2(
        vocab_size=sizes.vocab_size,
        hidden_size=sizes.hidden_size,
        num_layers=sizes.num_layers,
        num_attention_heads=sizes.num_attention_heads,
        inner_dim=sizes.inner_dim,
    )
    model = models.BertClassifier(encoder, 2)
    model.training_loss = lambda: sparse_cross_entropy
    return model


def _peer(data, system, examples):
    from benchmarks import peer

    steps = WARMUP + STEPS[data]
    model, tokenizer = peer.load_lora(2) if system == LORA else peer.load(SIZE, 2, data == "squad")
    if data == "squad":
        rows = [peer.window_row(window) for window in examples]
    else:
        rows = peer.tokenize(tokenizer, examples, [int(label) for label in examples.labels])
    dataset = peer.batches(tokenizer, rows, BATCH, shuffle=True)
    iterator = peer.train(model, dataset, steps, 1e-3, autocast=system == PEER_BF16)
    return measuring.step_rate(iterator, BATCH, WARMUP, STEPS[data])


def run_missing(data_dir, only, turns):
    """Measures the missing cases, in turns."""
    plan = [(data, system, t) for data in only.split(",") for t in range(turns)
            for system in CASES[data]]  # fmt: skip
    missing = LEDGER.missing(plan)
    for number, (data, system, turn) in enumerate(missing, 1):
        folder = str(pathlib.Path(data_dir) / FOLDERS[data])
        row = {"data": data, "system": system, "turn": turn}
        row |= measuring.run_in_process("benchmarks.speed", data, system, folder)
        print(f"{number} of {len(missing)}: {row}", flush=True)
        LEDGER.add("rows", [row])


def training_speed(rows_by_key):
    """Returns Markdown lines: examples/s as median and range, and as a multiple of `adapters`'."""
    lines = ["| data | system | examples/s | relative to `adapters` | peak memory, MB |"]
    lines += ["| --- |" + " --- |" * 4]
    for data, systems in CASES.items():
        results = {
            s: [row for key, row in rows_by_key.items() if key[:2] == (data, s)] for s in systems
        }
        rates = {s: [row["examples_per_second"] for row in rows] for s, rows in results.items()}
        for system in systems:
            if not rates[system] or not rates[PEER]:
                continue
            median, peer_median = (statistics.median(rates[s]) for s in (system, PEER))
            spread = measuring.spread(rates[system])
            memory = statistics.median(row["peak_memory_mb"] for row in results[system])
            lines += [
                f"| {data} | {system} | {spread} | {median / peer_median:.2f} | {memory:.0f} |"
            ]
    return lines


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(training_speed)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        only=(",".join(CASES), "Data, separated by commas."),
        turns=(TURNS, "Number of measurements of each case."),
    )
