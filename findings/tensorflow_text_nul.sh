#!/bin/bash
# tensorflow-text: `regex_split` and `regex_split_with_offsets` drop a text from its first NUL on.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0, tensorflow-text 2.20.1
#   'a b\0 c d': ['a', 'b'], with another control character ['a', 'b\x01', 'c', 'd']
# Expected: only the spaces split the text, as `tf.strings.regex_replace` sees it.
# Seen: what follows the NUL is lost without an error. tensorflow/text#997, closed, mentions it.
# Affects raw text from web pages and databases, unless NUL is removed or replaced first.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile \
  tensorflow==2.20.0 tensorflow-text==2.20.1 tf_keras==2.20.1
cat > "$folder/find.py" <<'PYTHON'
import tensorflow as tf
import tensorflow_text


def split(text):
    (parts,) = tensorflow_text.regex_split(tf.constant([text]), " ").to_list()
    return [part.decode() for part in parts]


print(f"tensorflow {tf.__version__}, tensorflow-text {tensorflow_text.__version__}")
found, other = split("a b\0 c d"), split("a b\1 c d")
print(f"'a b\\0 c d': {found}, with another control character {other}")
raise SystemExit(0 if found == ["a", "b"] and other == ["a", "b\1", "c", "d"] else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py"
