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

from benchmarks.step_models import Case, arguments, new_model

Chip = collections.namedtuple("Chip", "topology options accelerator replicas gib")
# A replica is a core of v2 and v3, and a whole chip (both its cores, or its one) of v4 and v5e;
# `gib` is the memory of a replica.
CHIPS = {
    "v2": Chip("v2:2x2", {}, "v2-8", 8, 8),
    "v3": Chip("v3:2x2", {}, "v3-8", 8, 16),
    "v4": Chip("v4:2x2x1", {"chip_config_name": "megacore"}, "v4-8", 4, 32),
    "v5e": Chip("v5e:2x2", {}, "v5litepod-4", 4, 16),
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
