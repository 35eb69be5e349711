#!/bin/bash
# KerasHub: the tokenizer of an uncased BERT keeps accents, and takes words with a no-break space between for one.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   keras-hub 0.32.0, tokenizers 0.23.3
#   'The cafe': the cafe; BERT: the cafe
#   'The caf\xe9': the caf ##é; BERT: the cafe
#   'Na\xefve': [UNK]; BERT: naive
#   'The\xa0fox': [UNK]; BERT: the fox
#   'The\u3000fox': [UNK]; BERT: the fox
#   'To\u200bgether': to [UNK]; BERT: to ##gether
# Expected: the pieces that the checkpoint was trained with. BERT's README says that its tokenizer turns all white
#   space into spaces and, for uncased models, takes accents away; tokenizer_config.json has do_lower_case only.
# Seen: the converter (utils/transformers/convert_bert.py) hands over do_lower_case as `lowercase`, and the tokenizer
#   has strip_accents=False for itself, since keras-team/keras-hub#289. A word with an accent becomes other pieces, or
#   [UNK]. White space is what RE2's \s matches, which is ASCII, so two words with a no-break space, U+2009 or U+3000
#   are one word, usually [UNK]; keras-team/keras-hub#2963 keeps this in the new tokenizer without TensorFlow. Zero
#   width characters split a word, where BERT drops them. Nothing warns.
# Affects French, Spanish and names with an uncased checkpoint, texts of web pages and Japanese, and answers that should
#   be those of Hugging Face. BertTokenizer(vocabulary, lowercase=True, strip_accents=True) helps for accents.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 keras==3.15.1 keras-hub==0.32.0 \
  tokenizers==0.23.3 safetensors==0.8.0 2> /dev/null
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
cat > "$folder/find.py" <<'PYTHON'
import json
import os
import sys
import tempfile

import keras_hub
import numpy as np
import tokenizers

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cafe caf ##e ##é naive fox to ##gether".split()
CONFIG = {"model_type": "bert", "vocab_size": len(VOCABULARY)}
TEXTS = "The cafe", "The café", "Naïve", "The\u00a0fox", "The\u3000fox", "To\u200bgether"
WRONG = 5  # all but the first

with tempfile.TemporaryDirectory() as folder:  # a checkpoint of Hugging Face, as far as the tokenizer needs it
    for name, value in ("config", CONFIG), ("tokenizer_config", {"do_lower_case": True}):
        with open(os.path.join(folder, f"{name}.json"), "w") as file:
            json.dump(value, file)
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(VOCABULARY) + "\n")
    tokenizer = keras_hub.tokenizers.BertTokenizer.from_preset(folder)
    reference = tokenizers.BertWordPieceTokenizer(os.path.join(folder, "vocab.txt"), lowercase=True)

print(f"keras-hub {keras_hub.__version__}, tokenizers {tokenizers.__version__}")
wrong = 0
for text in TEXTS:
    expected = reference.encode(text, add_special_tokens=False).tokens
    found = [VOCABULARY[number] for number in np.asarray(tokenizer(text))]
    print(f"{text!a}: {' '.join(found)}; BERT: {' '.join(expected)}")
    wrong += found != expected
sys.exit(wrong != WRONG)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
