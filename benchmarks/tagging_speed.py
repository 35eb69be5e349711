"""Sentences/s of WNUT-17 with this project or PyTorch's `adapters`, for `benchmarks.ratio`.

Both train a tagger with adapters of size 64 on the training sentences, input pipeline included, and
tag the raw texts of its dev set: from a string to entities with their offsets in characters.
"""

import os
import pathlib
import tempfile
import time

from benchmarks import measuring, tagging

BATCH, SIZE, LENGTH, WARMUP, STEPS, TIMES, PAD_TO = 32, 64, 128, 8, 32, 2, 2


def training_rate(is_ours: bool, data_dir: str) -> float:
    """Measures sentences/s of training, without the first steps."""
    data, labels = tagging.read(data_dir)
    return (_our_training if is_ours else _peer_training)(*data["train"], labels)


def _our_training(words, tags, labels):
    import adapter_bert_tf as abt
    from adapter_bert_tf.data.tagging import batches, tagged_files, windows
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.task_types.tags import TAGS

    base = abt.load_base()
    texts = TextEncoder(base.vocabulary, LENGTH)
    made = windows.make_windows(words, texts, LENGTH, TAGS.inputs["stride"])
    features = batches.features_of(made, tagged_files.label_ids(tags, labels))
    dataset = batches.train_batches(features, BATCH, WARMUP + STEPS, 0, LENGTH, PAD_TO)
    config = abt.AdapterConfig(SIZE)
    encoder = base.new_encoder(config, product_dtype=measuring.product_dtype())
    model = TAGS.new_model(encoder, len(labels))
    base.assign(model.named_variables())
    abt.select_trained(model, abt.Tuning())
    return measuring.dataset_rate(model, dataset, BATCH, WARMUP, STEPS)


def _peer_training(words, tags, labels):
    from benchmarks import tagging_peer

    model, tokenizer = _peer(labels)
    rows = tagging_peer.rows(tokenizer, words, tags, labels)
    steps = tagging_peer.iterate_steps(model, tokenizer, rows, BATCH, WARMUP + STEPS, 1e-3)
    return measuring.step_rate(steps, BATCH, WARMUP, STEPS)


def _peer(labels):
    import torch

    from benchmarks import tagging_peer

    torch.set_num_threads(os.cpu_count() or 1)
    return tagging_peer.load(SIZE, labels, 0)


def tagging_rate(is_ours: bool, data_dir: str) -> float:
    """Measures sentences/s of tagging raw texts; the first pass over them does not count."""
    data, labels = tagging.read(data_dir)
    texts = [" ".join(words) for words in data["dev"][0]]
    with tempfile.TemporaryDirectory() as folder:
        answer = (_our_tagger if is_ours else _peer_tagger)(labels, folder)
        answer(texts)
        start = time.perf_counter()
        answers = answer(texts * TIMES)
        return len(answers) / (time.perf_counter() - start)


def _our_tagger(labels, folder):
    import adapter_bert_tf as abt

    adapter = str(pathlib.Path(folder, "adapter"))
    model = abt.AdapterModel(abt.load_base())
    model.add_adapter("names", labels, abt.AdapterConfig(SIZE), head="tags")
    model.save_adapter("names", adapter)
    predictor = abt.Predictor(adapter, batch_size=BATCH)
    return lambda texts: list(predictor.stream((text,) for text in texts))


def _peer_tagger(labels, folder):
    from benchmarks import tagging_peer

    model, tokenizer = _peer(labels)
    return lambda texts: list(tagging_peer.tag_texts(model, tokenizer, texts, labels, BATCH))
