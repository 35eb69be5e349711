"""Serves the newest version of a SavedModel over TensorFlow Serving's REST interface.

    pip install aiohttp "tensorflow==2.20.*" "tensorflow-text==2.20.*"
    python server.py --model_name=bert --model_base_path=models/bert --enable_batching \
        --batching_parameters_file=batching_parameters.txt

For machines on which no TensorFlow Serving with the operations of the model runs. The flags are
those of `tensorflow_model_server`. HTTP is aiohttp's, batches are made by TensorFlow's operation
BatchFunction, and a folder with a higher number is loaded while the one before it answers.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import re
from concurrent import futures

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  # The graph has its operations.
from aiohttp import web

SPLITS = "row_splits"  # An output of taggers: their values are not one for each row.
LARGEST_REQUEST = 16 << 20  # Bytes.
SETTINGS = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
RETRY_SECONDS = 60.0  # After a version that could not be loaded.
STATUS = {
    tf.errors.InvalidArgumentError: 400,
    tf.errors.UnavailableError: 503,  # The queue of batches is full.
}


def read_settings(path):
    """The settings of batches in a text file of `BatchingParameters`; {} for None: no batches."""
    text = pathlib.Path(path).read_text() if path else ""
    found = re.findall(r"^\s*(\w+)\s*\{\s*value:\s*(\d+)\s*\}", text, re.M)
    return {name: int(value) for name, value in found if name in SETTINGS}


class Signature:
    """A signature of a loaded SavedModel. Its requests share batches, if they can.

    Args:
      function: the signature's concrete function.
      queue: name of its queue of batches, unique in the process.
      settings: of batches, as of `tf.nondifferentiable_batch_function`; {} for none.
    """

    def __init__(self, function, queue, settings):
        self.inputs = function.structured_input_signature[1]
        self._alone = function
        can_share = settings and SPLITS not in function.structured_outputs
        self._shared = _batched(function, queue, settings) if can_share else function

    def __call__(self, inputs):
        """Arrays by name, for lists by name. Raises `ValueError`, or an error of TensorFlow."""
        if inputs.keys() != self.inputs.keys():
            raise ValueError(f"The inputs are {sorted(self.inputs)}. Received: {sorted(inputs)}")
        tensors = {n: tf.constant(inputs[n], spec.dtype) for n, spec in self.inputs.items()}
        try:
            answer = self._shared(**tensors)
        except tf.errors.InvalidArgumentError:  # Of any request in the batch.
            answer = self._alone(**tensors)
        return {name: value.numpy() for name, value in answer.items()}


def _batched(function, queue, settings):
    """The same function, whose concurrent calls are computed together."""
    names, outputs = list(function.structured_input_signature[1]), list(function.structured_outputs)

    @tf.nondifferentiable_batch_function(**settings, autograph=False)
    def run(*values):
        answer = function(**dict(zip(names, values, strict=True)))
        return [answer[name] for name in outputs]

    @tf.function(autograph=False)
    def serve(**inputs):
        # TensorFlow names the queue after the scope. It computes all of a queue by one function,
        # so two signatures with one queue would get each other's answers.
        with tf.name_scope(queue):
            return dict(zip(outputs, run(*(inputs[name] for name in names)), strict=True))

    return serve.get_concrete_function(**function.structured_input_signature[1])


class Version:
    """A SavedModel, loaded and warm.

    Args:
      folder: its name is the number of the version.
      settings: as of `Signature`.
      side: 0 or 1, another one than that of the version before. The queues of a side are used
        again, because TensorFlow never frees one, nor its threads.
    """

    def __init__(self, folder, settings, side=0):
        self.number, self.side = int(folder.name), side
        self._model = tf.saved_model.load(str(folder))  # It holds the variables.
        self.signatures = {
            name: Signature(function, f"queue_{name}_{side}", settings)
            for name, function in self._model.signatures.items()
        }
        for signature in self.signatures.values():
            if all(spec.dtype == tf.string for spec in signature.inputs.values()):
                self._warm(signature)

    def _warm(self, signature):
        """Answers an empty text: the first request takes longer than others."""
        for task in self.signatures if "task" in signature.inputs else [""]:
            with contextlib.suppress(tf.errors.InvalidArgumentError):  # Not a task of `tasks`.
                signature({name: [task if name == "task" else ""] for name in signature.inputs})


def newest(base):
    """The folder with the highest number, or None."""
    folders = [path for path in pathlib.Path(base).glob("*") if path.name.isdecimal()]
    return max(folders, key=lambda path: int(path.name), default=None)


class ModelServer:
    """Answers requests by the newest version in a folder."""

    def __init__(self, name, base, settings, threads):
        self._name, self._base, self._settings = name, base, settings
        self._pool = futures.ThreadPoolExecutor(threads)
        if (folder := newest(base)) is None:
            raise SystemExit(f"{base} has no folder whose name is a number, such as {base}/1.")
        self.version = Version(folder, settings)

    async def watch(self, seconds):
        """Looks for another newest version every few seconds, and changes to it."""
        while True:
            await asyncio.sleep(seconds)
            try:
                folder = newest(self._base)
                if folder is not None and int(folder.name) != self.version.number:
                    side = 1 - self.version.side
                    self.version = await asyncio.to_thread(Version, folder, self._settings, side)
                    print(f"Serving version {self.version.number}", flush=True)
            except Exception as error:  # The version before goes on.
                print(f"The newest version in {self._base} is not served: {error}", flush=True)
                await asyncio.sleep(RETRY_SECONDS)

    async def status(self, request):
        """GET /v1/models/NAME"""
        self._require_name(request)
        state = {"version": str(self.version.number), "state": "AVAILABLE"}
        return web.json_response({"model_version_status": [state]})

    async def predict(self, request):
        """POST /v1/models/NAME:predict"""
        self._require_name(request)
        version = self.version  # The same one for all of the request.
        try:
            body = json.loads(await request.read())
            name = body.get("signature_name", "serving_default")
            if (signature := version.signatures.get(name)) is None:
                raise ValueError(f"Signatures are {[*version.signatures]}. Received: {name!r}")
            inputs, by_row = columns(body, list(signature.inputs))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return failure(400, f"{type(error).__name__}: {error}")
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(self._pool, signature, inputs)
            values = rows_of(answer) if by_row else columns_of(answer)
        except (TypeError, ValueError) as error:
            return failure(400, str(error))
        except tf.errors.OpError as error:
            return failure(STATUS.get(type(error), 500), error.message)
        text = json.dumps({"predictions" if by_row else "outputs": values})
        return web.Response(text=text, content_type="application/json")

    def _require_name(self, request):
        if request.match_info["name"] != self._name:
            raise web.HTTPNotFound(text=json.dumps({"error": "No model has this name."}))


def failure(status, message):
    """A response with an error, as TensorFlow Serving writes it."""
    return web.json_response({"error": message}, status=status)


def columns(body, names):
    """The inputs of a request by name, and whether they were in rows. Raises `ValueError`."""
    if ("inputs" in body) == ("instances" in body):
        raise ValueError("A request has either inputs or instances.")
    if "inputs" in body:
        values = body["inputs"]
        return (values if isinstance(values, dict) else {names[0]: values}), False
    rows = [row if isinstance(row, dict) else {names[0]: row} for row in body["instances"]]
    if others := [row for row in rows if row.keys() != {*names}]:
        raise ValueError(f"The inputs are {names}. Received: {[*others[0]]}")
    return {name: [row[name] for row in rows] for name in names}, True


def columns_of(answer):
    """The values of each output by name; of a single output without its name."""
    values = {name: as_json(array) for name, array in answer.items()}
    return values if len(values) > 1 else next(iter(values.values()))


def rows_of(answer):
    """The values of each row. Raises `ValueError` for values that are not one for each row."""
    if len({len(array) for array in answer.values()}) > 1:
        raise ValueError("The values of this signature are not one for each row: ask with inputs.")
    lists = [as_json(array) for array in answer.values()]
    if len(lists) == 1:
        return lists[0]
    return [dict(zip(answer, row, strict=True)) for row in zip(*lists, strict=True)]


def as_json(array):
    """Lists of numbers or texts."""
    if array.dtype == object:
        decode = np.vectorize(lambda text: text.decode("utf-8", "replace"), otypes=[object])
        array = decode(array)
    return array.tolist()


def main():
    """Runs the server until it is told to end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_name", default="model")
    parser.add_argument("--model_base_path", required=True, help="the folder of the versions")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--rest_api_port", type=int, default=8501)
    parser.add_argument("--rest_api_num_threads", type=int, help="requests at a time")
    parser.add_argument("--enable_batching", action="store_true")
    parser.add_argument("--batching_parameters_file")
    parser.add_argument("--file_system_poll_wait_seconds", type=float, default=1)
    flags = parser.parse_args()
    if flags.enable_batching != bool(flags.batching_parameters_file):
        parser.error("--enable_batching needs --batching_parameters_file, and the other way round.")
    settings = read_settings(flags.batching_parameters_file)
    # Twice the largest batch: one is computed while the next one is collected.
    threads = max(4 * (os.cpu_count() or 1), 2 * settings.get("max_batch_size", 0))
    threads = flags.rest_api_num_threads or threads
    server = ModelServer(flags.model_name, flags.model_base_path, settings, threads)

    async def watching(_):
        task = asyncio.create_task(server.watch(flags.file_system_poll_wait_seconds))
        yield
        task.cancel()

    app = web.Application(client_max_size=LARGEST_REQUEST)
    app.cleanup_ctx.append(watching)
    app.add_routes([web.post("/v1/models/{name}:predict", server.predict)])
    app.add_routes([web.get("/v1/models/{name}", server.status)])
    print(f"Serving version {server.version.number} on port {flags.rest_api_port}", flush=True)
    web.run_app(app, host=flags.host, port=flags.rest_api_port, print=None, access_log=None)


if __name__ == "__main__":
    main()
