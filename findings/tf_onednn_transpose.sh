#!/bin/bash
# TensorFlow on CPU: with oneDNN, a small tensor takes five times as long to transpose.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64, AMD EPYC with AVX2, two cores:
#   TensorFlow 2.20.0
#   microseconds to swap two axes of 1 x 53 x 12 x 32: 73 with oneDNN, 14 without
# Expected: oneDNN's kernels are at least as fast as TensorFlow's own, also for 80 KB.
# Seen: a transposition with oneDNN has a fixed cost of 0.07 to 0.1 ms. With 32 times the values, both kernels
# take as long. The attention of a transformer has four transpositions in each block, so six blocks have 24: 2 ms
# of the 20 ms that a prediction for one text takes. tf.einsum can write its result in the order that comes next,
# without this cost.
# Affects whoever serves single texts on a CPU where TensorFlow turns oneDNN on.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
cat > "$folder/measure.py" <<'PYTHON'
import statistics
import time

import tensorflow as tf

COUNT = 200
x = tf.random.stateless_normal([1, 53, 12, 32], [0, 1])


def microseconds(operation):
    @tf.function(autograph=False)
    def run(x):
        for _ in range(COUNT):
            x = operation(x)
        return x

    times = []
    for _ in range(33):
        start = time.perf_counter()
        run(x)[0, 0, 0, 0].numpy()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times[3:]) / COUNT


# The relu keeps two transpositions from being joined to none.
both = microseconds(lambda x: tf.nn.relu(tf.transpose(x, [0, 2, 1, 3])))
print(round(both - microseconds(tf.nn.relu)))
PYTHON
with=$(TF_ENABLE_ONEDNN_OPTS=1 "$folder/venv/bin/python" "$folder/measure.py" 2> /dev/null)
without=$(TF_ENABLE_ONEDNN_OPTS=0 "$folder/venv/bin/python" "$folder/measure.py" 2> /dev/null)
"$folder/venv/bin/python" -c "import importlib.metadata as m; print('TensorFlow', m.version('tensorflow'))"
echo "microseconds to swap two axes of 1 x 53 x 12 x 32: $with with oneDNN, $without without"
test "$with" -gt $((3 * without))
