"""TensorFlow functions as ONNX models."""

import importlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from adapter_bert_tf.errors import Unavailable, Unsupported

OPSET = 17  # onnxruntime 1.12 of July 2022 and later.
LARGE = 256  # Bytes of a constant that is a weight; shapes and axes are smaller.


def to_onnx(function: Any) -> bytes:
    """Converts a concrete function with named inputs and outputs. Raises `InputError`.

    The names of its tensors become those of the model.
    """
    try:
        onnx, tf2onnx = map(importlib.import_module, ("onnx", "tf2onnx"))
    except ImportError as error:
        raise Unavailable(
            f"ONNX needs more packages: pip install adapter_bert_tf[onnx]. Missing: {error.name}"
        ) from error
    frozen = convert_variables_to_constants_v2(function)
    graph = _without_erfc(frozen.graph.as_graph_def())
    weights = _take_weights(graph)
    inputs = {tensor.name: tensor.name.partition(":")[0] for tensor in frozen.inputs}
    inputs |= {f"{name}:0": name for name in weights}
    names = sorted(function.structured_outputs)  # In the order of the function's outputs.
    outputs = {tensor.name: name for tensor, name in zip(frozen.outputs, names, strict=True)}
    model, _ = tf2onnx.convert.from_graph_def(
        graph,
        name="task",
        input_names=list(inputs),
        output_names=list(outputs),
        opset=OPSET,
        tensors_to_rename=inputs | outputs,
    )
    _put_weights(model.graph, weights)
    unknown = {
        node.op_type for node in model.graph.node if not onnx.defs.has(node.op_type, node.domain)
    }
    if unknown:
        raise Unsupported(f"ONNX has no operation for a part of the model: {sorted(unknown)}.")
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _take_weights(graph: graph_pb2.GraphDef) -> dict[str, Any]:
    """Makes inputs of the graph's large constants; returns their values by the names of the inputs.

    tf2onnx 1.17 copies constants again and again: 90 MB of weights took 7 GB of memory.
    """
    weights = {}
    for node in graph.node:
        if node.op != "Const" or (value := node.attr["value"].tensor).ByteSize() < LARGE:
            continue
        weights[node.name] = tf.make_ndarray(value)
        dtype = value.dtype
        node.op = "Placeholder"
        node.ClearField("attr")
        node.attr["dtype"].type = dtype
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(weights[node.name].shape).as_proto())
    return weights


def _put_weights(graph: Any, weights: Mapping[str, Any]) -> None:
    """Makes initializers of the inputs of an ONNX graph that are weights."""
    from onnx import numpy_helper

    inputs = [value for value in graph.input if value.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)
    used = {name for node in graph.node for name in node.input}
    graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in weights.items() if name in used
    )


def _without_erfc(graph: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
    """The graph with `1 - erf(x)` for each `erfc(x)`.

    TensorFlow computes the exact GELU by `Erfc`. tf2onnx 1.17 leaves it in the model, which no
    runtime can load.
    """
    changed = graph_pb2.GraphDef()
    changed.CopyFrom(graph)
    for node in list(changed.node):
        if node.op != "Erfc":
            continue
        one = node_def_pb2.NodeDef(name=f"{node.name}/one", op="Const")
        one.attr["dtype"].type = node.attr["T"].type
        value = tf.make_tensor_proto(1.0, tf.as_dtype(node.attr["T"].type))
        one.attr["value"].tensor.CopyFrom(value)
        erf = node_def_pb2.NodeDef(name=f"{node.name}/erf", op="Erf", input=list(node.input))
        erf.attr["T"].type = node.attr["T"].type
        node.op = "Sub"
        node.ClearField("input")
        node.input.extend([one.name, erf.name])
        changed.node.extend([one, erf])
    return changed
