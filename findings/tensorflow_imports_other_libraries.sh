#!/bin/bash
# TensorFlow: `import tensorflow` also imports pandas, Pillow and Google's API client, if they are installed.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   TensorFlow 2.20.0, tf-keras 2.20.1
#   processor time and libraries: usual 2.28 pandas PIL googleapiclient; hidden 1.76
# Expected: libraries that a program does not use are not loaded.
# Seen: all three are loaded (Keras's data adapters and image functions, TensorFlow's client of Cloud TPUs
# try to import them), and the import takes a quarter longer. tf-models-official installs all of them.
# Affects the start of every short command and every worker process. TensorFlow works without them: a
# program can hide them during the import.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow==2.20.0 tf-keras==2.20.1 pandas==2.3.3 \
  pillow==12.0.0 google-api-python-client==2.187.0
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 TF_USE_LEGACY_KERAS=1
cat > "$folder/load.py" <<'PYTHON'
import sys
import time

names = ("pandas", "PIL", "googleapiclient")
if sys.argv[1] == "hidden":
    sys.modules.update(dict.fromkeys(names))
start = time.process_time()
import tensorflow as tf

tf.keras.Model
print(f"{time.process_time() - start:.2f}", *(name for name in names if sys.modules.get(name)))
PYTHON
load() { "$folder/venv/bin/python" "$folder/load.py" "$1" 2> /dev/null; }
load usual > /dev/null
usual=$(load usual) hidden=$(load hidden)
"$folder/venv/bin/python" -c 'import importlib.metadata as m; print("TensorFlow", m.version("tensorflow"))'
echo "processor time and libraries: usual $usual; hidden $hidden"
[ "${usual#* }" = "pandas PIL googleapiclient" ] && [ "${hidden% }" = "${hidden%% *}" ]
