"""Training and prediction steps, compiled for TPU chips that are not installed.

    python -m benchmarks.tpu_hlo '[{"chip": "v4", "step": "train", "base": "base", ...}, ...]'

prints a JSON line for each `Case`, given by its fields. Nothing is executed. Needs the packages of
the extra `tpu-compiler`; `compile_for_tpu` uses private interfaces of jaxlib.
"""

import collections
import contextlib
import dataclasses
import functools
import importlib.metadata
import json
import os
import re
import sys
import time
from unittest import mock

Chip = collections.namedtuple("Chip", "topology options accelerator replicas gib")
# A replica is a core of v2 and v3, and a whole chip (both its cores, or its one) of v4 and v5e;
# `gib` is the memory of a replica.
CHIPS = {
    "v2": Chip("v2:2x2", {}, "v2-8", 8, 8),
    "v3": Chip("v3:2x2", {}, "v3-8", 8, 16),
    "v4": Chip("v4:2x2x1", {"chip_config_name": "megacore"}, "v4-8", 4, 32),
    "v5e": Chip("v5e:2x2", {}, "v5litepod-4", 4, 16),
}
TASK_NAMES = (*(f"task{i}" for i in range(7)), "last")
# Names of multitask methods in cases.
METHODS = {
    "full": "multitask_full",
    "shared": "multitask_adapters",
    "houlsby": "per_task_adapters",
}
VOCABULARY = 30522  # Of BERT, uncased.
BASES = {
    "tiny": {"hidden_size": 16, "num_layers": 2, "num_attention_heads": 2, "inner_dim": 32},
    "base": {"hidden_size": 768, "num_layers": 12, "num_attention_heads": 12, "inner_dim": 3072},
    "large": {"hidden_size": 1024, "num_layers": 24, "num_attention_heads": 16, "inner_dim": 4096},
}
PACKAGES = ("tensorflow", "tf-keras", "tf-models-official", "jax", "jaxlib", "libtpu")
MEMORY = ("argument", "output", "alias", "temp", "generated_code")
# TPUs know 64-bit integers only as pairs of 32-bit ones.
UNWELCOME = {
    "s64": r"\bs64\[",
    "f64": r"\bf64\[",
    "stateful rng": r" rng(-get-and-update-state)?\(",
    "host": r" (custom-call|infeed|outfeed|send|recv)\(",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """Parameters of a compiled step.

    Args:
      chip: a key of `CHIPS`.
      step: `train` or `predict`.
      base: a key of `BASES`.
      head: `classes`, `score`, `span`, `words`: masked words, or `several`: of all `TASK_NAMES`,
        the last with a score.
      outputs: of the head; of several tasks those of each that has classes.
      adapter: a preset's name, or `LOWER/UPPER`: presets of a stack; `adapter_size` is the size,
        of the upper one in a stack, 0 the preset's. Each of several tasks has its own. Of these
        also `shared`, one for all, `full`, none, `hyperformer`, `hyperformer++`, and `pals`, of
        which it is the size.
      optimizer: of `training.optimizer.OPTIMIZERS`.
      precision: `float32` or `bfloat16`.
      length: word pieces of an input.
      batch: examples a replica.
    """

    chip: str
    step: str
    base: str
    head: str
    outputs: int
    adapter: str
    adapter_size: int
    optimizer: str
    precision: str
    length: int
    batch: int


def new_model(case):
    """Makes the model of a case with random weights, compiled as by `run_classifier.py`."""
    from adapter_bert_tf.adapters.task_encoder import new_encoder
    from adapter_bert_tf.training.device.precision import precision_scope
    from adapter_bert_tf.training.loop import TrainingSettings, compile_model
    from adapter_bert_tf.training.tuning import Tuning, select_trained

    several = case.head == "several"
    with precision_scope(case.precision):
        sizes = {"vocab_size": VOCABULARY, **BASES[case.base]}
        model = with_head(case, new_encoder(sizes, adapter_of(case)))
    tuning = METHODS.get(case.adapter, case.adapter) if several else "adapters"
    # `adapt` leaves the LayerNorms frozen by default.
    select_trained(model, Tuning(tuning, train_layer_norm=case.head != "words"))
    compile_model(
        model,
        TrainingSettings(
            steps=1000, batch_size=case.batch, learning_rate=3e-4, optimizer=case.optimizer
        ),
    )
    return model


def adapter_of(case):
    """Returns the configuration of a case's adapters; None for full fine-tuning."""
    from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
    from adapter_bert_tf.adapters.languages.stack import StackConfig

    if "/" in case.adapter:
        below, above = (PRESETS[name] for name in case.adapter.split("/"))
        preset = StackConfig(below, above, "below")
    else:
        other = AdapterConfig(normalize_output=case.adapter.startswith("hyper"))
        preset = PRESETS.get(case.adapter, other)
    adapter = preset.adjusted(size=case.adapter_size) if case.adapter_size else preset
    several = case.head == "several"
    return of_tasks(case.adapter, adapter, TASK_NAMES) if several else adapter


def with_head(case, encoder):
    """Returns the model of a case: its head on an encoder."""
    from adapter_bert_tf.heads.classifier import Classifier
    from adapter_bert_tf.heads.masked_words.model import MaskedWordModel
    from adapter_bert_tf.heads.mixed.classifier import HeadOf, MixedClassifier
    from adapter_bert_tf.heads.span_labeler import SpanLabeler

    if case.head == "span":
        return SpanLabeler(encoder)
    if case.head == "words":
        return MaskedWordModel(encoder)
    if case.head == "several":
        *others, last = TASK_NAMES
        heads = [HeadOf(name, case.outputs) for name in others]
        return MixedClassifier(encoder, [*heads, HeadOf(last, 1, is_score=True)])
    return Classifier(encoder, case.outputs, regression=case.head == "score")


def of_tasks(name, adapter, tasks):
    """Returns the configuration of multitask modules, by the name in a case."""
    from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
    from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
    from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig

    tasks = tuple(tasks)
    if name in ("full", "shared"):
        return adapter if name == "shared" else None
    if name == "pals":
        return PalsConfig(tasks, adapter.bottleneck_size, 4)
    if name.startswith("hyperformer"):
        return HyperFormerConfig(adapter, tasks, shared=name == "hyperformer++")
    return PerTaskConfig(adapter, tasks)


def arguments(case):
    """Returns (inputs,) of a step, or (inputs, labels) of a training step, all zero."""
    import tensorflow as tf

    names = ("input_word_ids", "input_mask", "input_type_ids")
    inputs = {name: tf.zeros([case.batch, case.length], tf.int32) for name in names}
    if case.head == "several":
        inputs["task_ids"] = tf.zeros([case.batch], tf.int32)
    if case.head == "words":
        return words_arguments(case, inputs)
    if case.step == "predict":
        return (inputs,)
    if case.head == "several":
        return inputs, tf.zeros([case.batch, 2])
    shape = [case.batch, case.outputs] if case.head == "span" else [case.batch]
    return inputs, tf.zeros(shape, tf.float32 if case.head == "score" else tf.int32)


def words_arguments(case, inputs):
    """Returns the arguments of a step of masked words, with the places of a share of 0.15."""
    import tensorflow as tf

    places = [case.batch, int(0.15 * case.length + 0.5)]
    inputs["masked_positions"] = tf.zeros(places, tf.int32)
    if case.step == "train":
        return inputs, tf.zeros([*places, 2])
    return (
        inputs | {"masked_ids": tf.zeros(places, tf.int32), "masked_weights": tf.zeros(places)},
    )


@contextlib.contextmanager
def random_numbers_as_on_tpu():
    """Lowers random numbers like TensorFlow for a TPU.

    It chooses the algorithm by device: on a CPU Philox, with a key that is scrambled; on a TPU the
    compiler's own, with the seed as key and one counter. ThreeFry's operands are the latter's, and
    `as_for_tpu` replaces its name.
    """
    from tensorflow.python.ops import random_ops_util

    select = random_ops_util.get_key_counter_alg
    with mock.patch.object(
        random_ops_util, "get_key_counter_alg", lambda seed, _: select(seed, "threefry")
    ):
        yield


@functools.lru_cache(maxsize=1)
def lower(case):
    """Returns the HLO text of a case's step, with static shapes; the same for every chip."""
    import tensorflow as tf

    model = new_model(case)
    if case.step == "train":
        step = tf.function(lambda *batch: model.train_step(batch), jit_compile=True)
    else:
        step = tf.function(model.predict_step, jit_compile=True)
    with random_numbers_as_on_tpu():
        return step.experimental_get_compiler_ir(*arguments(case))(stage="hlo_no_metadata")


def as_for_tpu(text):
    """HLO text without `copy`, which the importer rejects and which has no effect here."""
    return text.replace(" copy(", " reshape(").replace("=rng_three_fry", "=rng_default")


def unwelcome(text):
    """Dict from unsuitable operations for TPUs to their number in an HLO text."""
    counts = collections.Counter()
    for line in text.splitlines():
        result, _, operation = line.partition(" = ")
        name = result.split()[-1:]
        if name and (f"{name[0]}," in text or f"{name[0]})" in text or "ROOT" in result):
            counts.update(
                kind for kind, pattern in UNWELCOME.items() if re.search(pattern, operation)
            )
    return dict(counts)


def compile_for_tpu(text, chip):
    """Compiles HLO text for one replica; returns jaxlib's executable, which cannot run here.

    Raises:
      jax.errors.JaxRuntimeError: when the compiler refuses, for example for want of memory.
    """
    os.environ |= {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_WORKER_ID": "0",
        "TPU_WORKER_HOSTNAMES": "localhost",
        # Without it only one process of a machine may load libtpu.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_ACCELERATOR_TYPE": CHIPS[chip].accelerator,
    }
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax.experimental import topologies
    from jaxlib import _hlo, _jax
    from jaxlib.mlir import ir

    module = _hlo.hlo_module_from_text(text)
    stablehlo = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    topology = topologies.get_topology_desc(
        CHIPS[chip].topology, platform="tpu", **CHIPS[chip].options
    )
    assert len(topology.devices) == CHIPS[chip].replicas, topology.devices
    device = topology.devices[0]
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    return device.client.compile(
        ir.Module.parse(stablehlo, mlir.make_ir_context()), _jax.DeviceList((device,)), options
    )


def try_case(case):
    """Compiles a case.

    Returns:
      dict: the case, `compiles`, and either `error` or bytes of memory and `flops`, and more.
    """
    from jax.errors import JaxRuntimeError

    start = time.process_time()
    text = as_for_tpu(lower(dataclasses.replace(case, chip="")))
    row = {
        "case": dataclasses.asdict(case),
        "unwelcome": unwelcome(text),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }
    try:
        executable = compile_for_tpu(text, case.chip)
    except JaxRuntimeError as error:
        if "lockfile" in str(error):  # Says nothing about the step.
            raise
        return row | {"compiles": False, "error": str(error)[:2000]}
    memory = executable.get_compiled_memory_stats()
    return row | {
        "compiles": True,
        "flops": executable.cost_analysis()["flops"],
        "memory": {name: getattr(memory, f"{name}_size_in_bytes") for name in MEMORY},
        "peak": memory.peak_memory_in_bytes,
        "cpu_seconds": round(time.process_time() - start, 1),
    }


if __name__ == "__main__":
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    for fields in json.loads(sys.argv[1]):
        print(json.dumps(try_case(Case(**fields))), flush=True)
