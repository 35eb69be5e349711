"""What `benchmarks.gpu_rows` compares between a CPU and a GPU; each in its own process.

    [CUDA_VISIBLE_DEVICES=-1] [TINY=1] python -m benchmarks.gpu_children FUNCTION [ARGUMENT]

prints a JSON line.
"""

import dataclasses
import json
import os
import pathlib
import sys
import time

import numpy as np

from adapter_bert_tf.cli import compilation_cache
from adapter_bert_tf.cli.error_handling import before_tensorflow

TEXTS = ["A man runs.", "It rains today, again.", "The cat sat on the mat. " * 9, ""]


def _device():
    import tensorflow as tf

    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"


def _case(**changes):
    from benchmarks.step_models import Case

    base = "tiny" if os.environ.get("TINY") == "1" else "base"
    return dataclasses.replace(
        Case("", "train", base, "classes", 2, "houlsby", 64, "adamw", "float32", 64, 8), **changes
    )


def _batch(case, seed):
    """Random inputs and labels of a case."""
    import tensorflow as tf

    from benchmarks.step_models import VOCABULARY

    rng, shape = np.random.default_rng(seed), [case.batch, case.length]
    mask = np.arange(case.length) < rng.integers(8, case.length + 1, [case.batch, 1])
    inputs = {
        "input_word_ids": rng.integers(5, VOCABULARY, shape) * mask,
        "input_mask": mask,
        "input_type_ids": np.zeros(shape),
    }
    labels = rng.integers(0, 2, [case.batch]).astype("f4")
    if case.head == "several":  # Each task has two of the joint outputs; the last has a score.
        tasks = inputs["task_ids"] = rng.integers(0, 7, [case.batch])
        labels = np.stack([2 * tasks + labels, 0 * labels], 1).astype("f4")
    kind = tf.float32 if case.head in ("several", "score") else tf.int32
    return {n: tf.constant(x, tf.int32) for n, x in inputs.items()}, tf.cast(labels, kind)


def _without_dropout(model):
    import tf_keras

    for layer in model.submodules:
        if isinstance(layer, tf_keras.layers.Dropout):
            layer.rate = 0.0
    return model


def numbers(weights):
    """Logits and 20 losses; the first process writes its random weights, the second reads them."""
    import tensorflow as tf

    from benchmarks.step_models import new_model

    tf.config.experimental.enable_tensor_float_32_execution(False)
    case = _case()
    model = _without_dropout(new_model(case))
    named = model.named_variables()
    if os.path.exists(weights):
        for name, value in np.load(weights).items():
            named[name].assign(value)
    else:
        np.savez(weights, **{name: variable.numpy() for name, variable in named.items()})
    predict = tf.function(
        lambda inputs: model(inputs, training=False), jit_compile=_device() == "GPU"
    )
    train = tf.function(model.train_step, jit_compile=_device() == "GPU")
    logits = predict(_batch(case, 0)[0]).numpy().tolist()
    losses = []
    for seed in range(20):
        for metric in model.metrics:
            metric.reset_state()
        losses.append(float(train(_batch(case, seed))["loss"]))
    return {"device": _device(), "logits": logits, "losses": losses}


def methods():
    """For each method, the loss of a second step with XLA and without."""
    import tensorflow as tf
    import tf_keras

    from benchmarks.step_models import METHODS, new_model

    cases = {
        name: _case(adapter=name) for name in ("houlsby", "adapter_bert", "pfeiffer", "parallel")
    }
    cases |= {f"several {name}": _case(adapter=name, head="several")
              for name in (*METHODS, "hyperformer", "hyperformer++", "pals")}  # fmt: skip
    cases |= {"span": _case(head="span"), "score": _case(head="score", outputs=1)}
    results = {}
    for name, case in cases.items():
        case = dataclasses.replace(case, base="tiny", adapter_size=16)
        losses = []
        for compiled in (False, True):
            tf_keras.utils.set_random_seed(1)
            model = _without_dropout(new_model(case))
            batch = _batch(case, 0)
            if case.head == "span":
                batch = (batch[0], tf.zeros([case.batch, 2], tf.int32))
            step = tf.function(model.train_step, jit_compile=compiled)
            step(batch)
            losses.append(float(step(batch)["loss"]))
        results[name] = losses
    worst = max(abs(a - b) for a, b in results.values())
    return {"device": _device(), "losses": results, "difference": worst}


def _predictor(folder):
    import adapter_bert_tf as abt

    model = abt.AdapterModel(abt.load_base())
    model.add_adapter("task", ("0", "1"), abt.AdapterConfig(64), texts=1)
    model.save_adapter("task", folder)
    return abt.Predictor(folder)


def export(folder):
    """Exports the default base with an adapter to `FOLDER/DEVICE`; the weights are the same."""
    import tf_keras

    from adapter_bert_tf.serving.export import export_task

    place = pathlib.Path(folder, _device())
    tf_keras.utils.set_random_seed(1)
    adapter = pathlib.Path(folder, "adapter")
    if adapter.exists():
        import adapter_bert_tf as abt

        predictor = abt.Predictor(adapter)
    else:
        predictor = _predictor(adapter)
    model, name = predictor.model, predictor.adapters[0]
    export_task(str(place), model.model(name), model.config(name), model.base.vocabulary)
    return str(place)


def answer(folder):
    """The logits or probabilities of every SavedModel in a folder."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    tf.config.experimental.enable_tensor_float_32_execution(False)
    found = []
    for place in sorted(pathlib.Path(folder).glob("[CG]PU")):
        signature = tf.saved_model.load(str(place)).signatures["serving_default"]
        answers = signature(text_a=tf.constant(TEXTS))
        found.append(answers["probabilities"].numpy().tolist())
    return found


def score(rows, tiny):
    """Rows/s of `Predictor`."""
    import tempfile

    texts = [(" ".join(["word"] * (4 + i % 40)),) for i in range(rows)]
    with tempfile.TemporaryDirectory() as folder:
        predictor = _predictor(f"{folder}/adapter")
        list(predictor.stream(texts[: 64 if tiny else 2000]))
        start = time.perf_counter()
        answers = list(predictor.stream(texts))
    return {"device": _device(), "rows_per_second": len(answers) / (time.perf_counter() - start)}


if __name__ == "__main__":
    before_tensorflow()
    compilation_cache.use()
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
