"""GLUE as TensorFlow Datasets keeps it, written with its own writer."""

import tensorflow as tf
import tensorflow_datasets as tfds

ENTAILMENT = ["entailment", "not_entailment"]
# Config, text features, label names in TensorFlow Datasets' order, labels of the two train rows.
CONFIGS = {
    "cola": (["sentence"], ["unacceptable", "acceptable"], [0, 1], ["0", "1"]),
    "mrpc": (["sentence1", "sentence2"], ["not_equivalent", "equivalent"], [1, 0], ["1", "0"]),
    "wnli": (["sentence1", "sentence2"], ["not_entailment", "entailment"], [0, 1], ["0", "1"]),
    "rte": (["sentence1", "sentence2"], ENTAILMENT, [1, 0], ["not_entailment", "entailment"]),
    "mnli": (
        ["premise", "hypothesis"],
        ["entailment", "neutral", "contradiction"],
        [2, 1],
        ["contradiction", "neutral"],
    ),
    "stsb": (["sentence1", "sentence2"], None, [3.25, 0.0], ["3.25", "0.0"]),
}


def write_tfds(folder, config):
    """Two examples a split, in descending order of `idx`."""
    texts, names, labels, _ = CONFIGS[config]
    kind = tfds.features.ClassLabel(names=names) if names else tf.float32
    features = tfds.features.FeaturesDict(
        {name: tfds.features.Text() for name in texts} | {"label": kind, "idx": tf.int32}
    )
    values = {name: [f"{name} 1", f"{name} é 0"] for name in texts}
    train = tf.data.Dataset.from_tensor_slices(values | {"label": labels[::-1], "idx": [1, 0]})
    hidden = [-1.0, -1.0] if names is None else [-1, -1]
    test = tf.data.Dataset.from_tensor_slices(values | {"label": hidden, "idx": [1, 0]})
    parts = ["_matched", "_mismatched"] if config == "mnli" else [""]
    splits = {
        "train": train,
        **{f"validation{part}": train for part in parts},
        **{f"test{part}": test for part in parts},
    }
    tfds.dataset_builders.store_as_tfds_dataset(
        name="glue",
        version="2.0.0",
        config=config,
        features=features,
        split_datasets=splits,
        data_dir=str(folder),
        disable_shuffling=True,
    )
