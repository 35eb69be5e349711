#!/bin/bash
# tf2onnx: `tf.nn.gelu` becomes an operator `Erfc` that ONNX does not have, without an error.
#
# Run on 2026-11-27, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0, tf2onnx 1.17.0, onnxruntime 1.32.0
#   tf.nn.gelu: ['Erfc', 'Mul', 'Neg'], InvalidGraph
#   tf.math.erf: ['Add', 'Erf', 'Mul'], loads
# Expected: a model of standard operators, or an error of the conversion.
# Seen: the conversion succeeds, and onnxruntime cannot load the model. The same function written
# with `tf.math.erf` converts and runs.
# Affects everybody who exports BERT, whose activation is the exact GELU.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile \
  tensorflow==2.20.0 tf_keras==2.20.1 tf2onnx==1.17.0 onnxruntime==1.32.0
cat > "$folder/find.py" <<'PYTHON'
import numpy as np
import onnxruntime
import tensorflow as tf
import tf2onnx


def written_out(x):
    return 0.5 * x * (1 + tf.math.erf(x / np.float32(np.sqrt(2))))


def try_convert(function):
    signature = [tf.TensorSpec([None, 4], tf.float32, name="x")]
    model, _ = tf2onnx.convert.from_function(tf.function(function), signature, opset=18)
    operators = sorted({node.op_type for node in model.graph.node})
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:
        return operators, type(error).__name__
    return operators, "loads"


print(
    f"tensorflow {tf.__version__}, tf2onnx {tf2onnx.__version__}, "
    f"onnxruntime {onnxruntime.__version__}"
)
exact, by_hand = try_convert(lambda x: tf.nn.gelu(x)), try_convert(written_out)
print(f"tf.nn.gelu: {exact[0]}, {exact[1]}")
print(f"tf.math.erf: {by_hand[0]}, {by_hand[1]}")
raise SystemExit(0 if "Erfc" in exact[0] and exact[1] != "loads" == by_hand[1] else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
