#!/bin/bash
# TensorFlow: tf.strings.lower(encoding="utf-8") follows the locale of the process.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   TensorFlow 2.20.0
#   English 'title \xec', Turkish 't\u0131tle \xec', Lithuanian 'title i\u0307\u0300'
# Expected: the same text everywhere, as of Python's str.lower and of Unicode's default mapping.
# Seen: in a Turkish locale "TITLE" becomes "tıtle", with a dotless i; in a Lithuanian one "Ì" becomes
# three code points. The locale need not be installed: ICU reads LC_ALL itself.
# Affects every preprocessing in the graph, such as uncased tokenizers: a model trained on one machine
# reads other word pieces on another.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0
cat > "$folder/lower.py" <<'PYTHON'
import sys

import tensorflow as tf

text = tf.strings.lower(["TITLE \u00cc"], encoding="utf-8").numpy()[0].decode()
sys.stdout.buffer.write(ascii(text).encode())
PYTHON
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
lower() { LC_ALL=$1 "$folder/venv/bin/python" "$folder/lower.py" 2> /dev/null; }
english=$(lower en_US.UTF-8) turkish=$(lower tr_TR.UTF-8) lithuanian=$(lower lt_LT.UTF-8)
"$folder/venv/bin/python" -c 'import importlib.metadata as m; print("TensorFlow", m.version("tensorflow"))'
echo "English $english, Turkish $turkish, Lithuanian $lithuanian"
[ "$english" = "'title \\xec'" ] && [ "$turkish" != "$english" ] && [ "$lithuanian" != "$english" ]
