#!/bin/bash
# tensorflow-text: FastBertTokenizer limits a word to 100 bytes; Hugging Face's WordPiece limits it
# to 100 characters, and Google's to 200.
#
# Run on 2026-11-27, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0, tensorflow-text 2.20.1, tokenizers 0.23.3
#   50 letters: 50 pieces, with tokenizers 50
#   60 letters: 1 pieces, with tokenizers 60
#   100 letters: 1 pieces, with tokenizers 100
#   102 letters: 1 pieces, with tokenizers 1
# Expected: a word of 60 Cyrillic letters (120 bytes) becomes 60 pieces, as with `tokenizers`.
# Seen: it becomes one [UNK]. 50 letters (100 bytes) still become 50 pieces.
# Affects languages without spaces (34 letters of Thai or kana are more than 100 bytes), and
# long words outside ASCII.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile \
  tensorflow==2.20.0 tensorflow-text==2.20.1 tf_keras==2.20.1 tokenizers==0.23.3
cat > "$folder/find.py" <<'PYTHON'
import tensorflow as tf
import tensorflow_text
import tokenizers
from tokenizers import models, pre_tokenizers

LETTERS = sorted(set("привет"))
VOCABULARY = ["[PAD]", "[UNK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
fast = tensorflow_text.FastBertTokenizer(vocab=VOCABULARY)
reference = tokenizers.Tokenizer(
    models.WordPiece({piece: i for i, piece in enumerate(VOCABULARY)}, unk_token="[UNK]")
)
reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

print(
    f"tensorflow {tf.__version__}, tensorflow-text {tensorflow_text.__version__}, "
    f"tokenizers {tokenizers.__version__}"
)
found = {}
for length in (50, 60, 100, 102):
    word = ("привет" * 17)[:length]
    theirs = len(reference.encode(word).ids)
    found[length] = (fast.tokenize([word]).flat_values.shape[0], theirs)
    print(f"{length} letters: {found[length][0]} pieces, with tokenizers {theirs}")
raise SystemExit(0 if found == {50: (50, 50), 60: (1, 60), 100: (1, 100), 102: (1, 1)} else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py"
