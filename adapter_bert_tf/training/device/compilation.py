"""XLA: which steps it compiles, and what is printed while it does."""

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.sanitize import parse_json
from adapter_bert_tf.training.device import xla_tools
from adapter_bert_tf.training.progress import Progress

SECONDS_FILE = "compile_seconds.json"  # In the folder of caches.
MOST_ENTRIES, LARGEST_FILE = 200, 1 << 20


def is_compiled(
    asked: bool | None, gpus: int, replicas: int, missing: Collection[str] = ()
) -> bool:
    """Whether XLA compiles the steps of a run.

    By default it does on one GPU, if it finds its tools. On a CPU it is slower, TPUs compile by
    themselves, and several GPUs have not been tried.

    Args:
      asked: value of `jit_compile`; None if the user did not decide.
      gpus: number of GPUs that TensorFlow sees.
      replicas: number of devices that a batch is divided among.
      missing: what XLA lacks to compile for a GPU, as of `missing_on`.
    """
    if asked is not None:
        return asked
    return gpus > 0 and replicas == 1 and not missing


def missing_on(gpus: int) -> tuple[str, ...]:
    """Returns what XLA lacks to compile for this machine's GPUs; logs it once."""
    missing = xla_tools.missing_tools() if gpus else ()
    if missing:
        logging.log_first_n(
            logging.WARNING,
            "Steps are not compiled, because XLA does not find %s. `adapter-bert doctor` says what "
            "to install.",
            1,
            " and ".join(missing),
        )
    return missing


def gpu_count() -> int:
    """Returns the number of GPUs that this process may use; uses none yet."""
    return len(tf.config.get_visible_devices("GPU"))


def compiles_by_default() -> bool:
    """Whether XLA compiles the steps of this process if no setting says otherwise."""
    gpus = gpu_count()
    return is_compiled(None, gpus, replicas=1, missing=missing_on(gpus))


def _print(line: str) -> None:
    print(line, flush=True)


class CompiledStep:
    """A function of a batch that XLA compiles for each shape; prints a line when it does.

    Args:
      run: function of a batch, any structure of tensors, the first `[rows, length, ...]`.
      name: noun for messages, such as `training step`.
      size: number of the model's parameters, because larger models take longer; 0: not known.
      spec: type of all batches, so that one trace serves every length; None: the first batch is
        traced, and then one of any length.
      compiling: function of what is compiled and `size`, that returns a context for it.
    """

    def __init__(
        self,
        run: Callable[[Any], Any],
        name: str,
        size: int = 0,
        spec: Any = None,
        compiling: Callable[[str, int], AbstractContextManager[None]] | None = None,
    ) -> None:
        options = {"reduce_retracing": True} if spec is None else {"input_signature": [spec]}
        self._run = compiled(run, jit_compile=True, **options)
        self._name, self._size, self._compiling = name, size, compiling or announced
        self._shapes: set[tuple[Any, ...]] = set()

    def __call__(self, batch: Any) -> Any:
        shapes = tuple(tuple(tensor.shape) for tensor in tf.nest.flatten(batch))
        if shapes in self._shapes:
            return self._run(batch)
        shape = " x ".join(map(str, shapes[0][:2]))
        with self._compiling(f"the {self._name} for batches of {shape}", self._size):
            outputs = self._run(batch)
        self._shapes.add(shapes)
        return outputs


def train_function(
    model: tf_keras.Model, spec: Any, progress: Progress
) -> Callable[[Iterator[Any]], dict[str, tf.Tensor]]:
    """Returns the function of `fit` for a model on one device: one step, from an iterator.

    The function of tf_keras takes the batch from the iterator inside its graph, so that no code of
    Python sees the shape that XLA is about to compile.
    """
    size = sum(variable.shape.num_elements() for variable in model.variables)

    @contextlib.contextmanager
    def compiling(what: str, size: int) -> Iterator[None]:
        with announced(what, size, progress.print_line), progress.compiling():
            yield

    def run(batch: Any) -> Any:  # Under a strategy of one device, too.
        return model.distribute_strategy.run(model.train_step, args=(batch,))

    step = CompiledStep(run, "training step", size, spec, compiling)
    return lambda iterator: step(next(iterator))


@contextlib.contextmanager
def announced(what: str, size: int, print_line: Callable[[str], None] = _print) -> Iterator[None]:
    """Returns a context that compiles something: prints a line before and one after."""
    key = f"{what}, {size:,} parameters, {_device()}"
    last = _read_seconds().get(key)
    print_line(f"XLA compiles {what}" + (f" (last time {last:.0f} s)." if last else "."))
    start = time.monotonic()
    yield
    seconds = time.monotonic() - start
    print_line(f"XLA compiled {what} in {seconds:.0f} s.")
    with contextlib.suppress(OSError):
        latest = [(k, v) for k, v in _read_seconds().items() if k != key][1 - MOST_ENTRIES :]
        text = json.dumps(dict([*latest, (key, round(seconds, 1))]), indent=1)
        storage.write_text(_seconds_path(), text)


def _read_seconds() -> dict[str, float]:
    """Returns the seconds that compilations took, by what was compiled, the latest last."""
    try:
        values = parse_json(storage.read_bytes(_seconds_path(), LARGEST_FILE))
    except (OSError, ValueError):
        return {}
    pairs = values.items() if isinstance(values, dict) else ()
    return {key: float(value) for key, value in pairs if isinstance(value, int | float)}


def _seconds_path() -> str:
    return str(storage.cache_folder() / SECONDS_FILE)


def _device() -> str:
    gpus = tf.config.get_visible_devices("GPU")
    details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
    return str(details.get("device_name", "CPU"))
