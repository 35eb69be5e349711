#!/bin/bash
# tf2onnx: a conversion takes dozens of times the memory of the model's weights.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0, tf2onnx 1.17.0, numpy 2.2.6
#   kernels in the graph, 24 MB: 847 MB more
#   kernels in the graph, 96 MB: 4139 MB more
#   kernels in the graph: 46 MB for each further MB
#   kernels as inputs, 24 MB: 11 MB more
#   kernels as inputs, 96 MB: 24 MB more
#   kernels as inputs: 0 MB for each further MB
# Expected: a few copies of the weights: TensorFlow's graph, the model in ONNX, and its bytes.
# Seen: each further MB of weights takes 46 MB at the peak of `tf2onnx.convert.from_graph_def`. Among others, the graph
#   is copied deeply before each of its optimizers (`optimizer/__init__.py`), with all weights. `large_model=True`,
#   meant for models above 2 GB, raises with NumPy 2, which has no `np.product`. The same graph with its kernels as
#   inputs, which become initializers of the model afterwards, takes no more than freezing the graph took before.
# Affects everybody who exports a transformer: BERT-base has 440 MB of weights, so its conversion needs more memory than
#   Colab gives; MiniLM with 90 MB took 7 GB. Weights as inputs help.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile \
  tensorflow==2.20.0 tf_keras==2.20.1 tf2onnx==1.17.0 numpy==2.2.6 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import resource
import subprocess
import sys

WIDTH, FEW, MANY = 1024, 6, 24  # A kernel has 4 MB.
WAYS = ("kernels in the graph", "kernels as inputs")


def convert(way, count):
    """The most memory in MB before and after the conversion of a chain of dense layers."""
    import tensorflow as tf
    import tf2onnx
    from onnx import numpy_helper
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    kernels = [tf.Variable(tf.random.normal([WIDTH, WIDTH])) for _ in range(count)]

    @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
    def layers(x):
        for kernel in kernels:
            x = tf.nn.relu(tf.matmul(x, kernel))
        return x

    frozen = convert_variables_to_constants_v2(layers.get_concrete_function())
    graph, values = frozen.graph.as_graph_def(), {}
    if way == WAYS[1]:
        for node in graph.node:
            if node.op == "Const" and node.attr["value"].tensor.ByteSize() > 1_000_000:
                values[node.name] = tf.make_ndarray(node.attr["value"].tensor)
                node.op = "Placeholder"
                del node.attr["value"]
                node.attr["shape"].shape.CopyFrom(tf.TensorShape([WIDTH, WIDTH]).as_proto())
    before = peak()
    names = [f"{name}:0" for name in values]
    model, _ = tf2onnx.convert.from_graph_def(
        graph,
        input_names=[frozen.inputs[0].name, *names],
        output_names=[frozen.outputs[0].name],
        opset=17,
    )
    model.graph.initializer.extend(
        numpy_helper.from_array(value, f"{name}:0") for name, value in values.items()
    )
    assert model.ByteSize() > count * 4_000_000
    print(before, peak())


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if len(sys.argv) > 1:
    convert(sys.argv[1], int(sys.argv[2]))
    raise SystemExit

from importlib.metadata import version

print(", ".join(f"{name} {version(name)}" for name in ("tensorflow", "tf2onnx", "numpy")))
found = {}
for way in WAYS:
    rows = []
    for count in (FEW, MANY):
        command = [sys.executable, __file__, way, str(count)]
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        before, after = map(int, text.split()[-2:])
        print(f"{way}, {4 * count} MB: {after - before} MB more")
        rows.append(after - before)
    found[way] = (rows[1] - rows[0]) / (4 * (MANY - FEW))
    print(f"{way}: {found[way]:.0f} MB for each further MB")
raise SystemExit(0 if found[WAYS[0]] > 15 > 3 * found[WAYS[1]] else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
