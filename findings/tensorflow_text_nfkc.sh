#!/bin/bash
# tensorflow-text: uncased BERT tokenizers rewrite x² to x2; the cased BertTokenizer ignores no-break spaces.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   tensorflow-text 2.20.1, tokenizers 0.23.3
#   uncased 'Caf\xe9 x': BertTokenizer cafe x; FastBertTokenizer cafe x; BERT cafe x
#   uncased 'X\xb2': BertTokenizer x ##2; FastBertTokenizer x ##2; BERT x ##²
#   uncased '\xbd': BertTokenizer 1 ##⁄ ##2; FastBertTokenizer 1 ##⁄ ##2; BERT ½
#   uncased 'Acme\u2122': BertTokenizer acme ##tm; FastBertTokenizer acme ##tm; BERT acme ##™
#   uncased '\uff21b': BertTokenizer a ##b; FastBertTokenizer a ##b; BERT [UNK]
#   uncased 'a\xb4b': BertTokenizer a b; FastBertTokenizer a b; BERT [UNK]
#   uncased '10\xa0km': BertTokenizer 10 km; FastBertTokenizer 10 km; BERT 10 km
#   cased '10\xa0km': BertTokenizer [UNK]; FastBertTokenizer 10 km; BERT 10 km
# Expected: the docstrings say that lower_case and lower_case_nfd_strip_accents lowercase, apply NFD and strip accents,
#   as BERT's code does. NFD leaves these characters as they are; BERT's vocabulary has pieces for many of them. A
#   no-break space ends a word in BERT, cased or not.
# Seen: both apply NFKC with case folding before NFD. So a word gets other pieces than the checkpoint was trained with,
#   and ¨ or ´ becomes a space. Without lower_case, BertTokenizer takes words with a no-break space between for one,
#   usually [UNK]; FastBertTokenizer, which is meant to be the same but faster, splits there.
# Affects units, fractions, trade marks, ligatures of PDFs and full-width letters in models that are trained or served
#   with these tokenizers or Model Garden's layers, and not with Hugging Face's, or the other way round.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 tensorflow-text==2.20.1 \
  tokenizers==0.23.3 2> /dev/null
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile
from importlib.metadata import version

import tensorflow_text
import tokenizers

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] x ##² ##2 ½ 1 ⁄ ##⁄ 2 acme ##™ ##tm a ##b b cafe 10 km".split()
CASES = [  # text, lower, whether BertTokenizer and FastBertTokenizer differ from BERT
    ("Café x", True, False, False),
    ("X²", True, True, True),
    ("½", True, True, True),
    ("Acme™", True, True, True),
    ("Ａb", True, True, True),
    ("a´b", True, True, True),
    ("10\u00a0km", True, False, False),
    ("10\u00a0km", False, True, False),
]

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "vocab.txt")
    with open(file, "w") as stream:
        stream.write("\n".join(VOCABULARY) + "\n")
    made = {
        lower: (
            tensorflow_text.BertTokenizer(file, lower_case=lower),
            tensorflow_text.FastBertTokenizer(VOCABULARY, lower_case_nfd_strip_accents=lower),
            tokenizers.BertWordPieceTokenizer(file, lowercase=lower),
        )
        for lower in (True, False)
    }

    def pieces(ids):
        return " ".join(VOCABULARY[number] for number in ids)

    print(", ".join(f"{name} {version(name)}" for name in ("tensorflow-text", "tokenizers")))
    wrong = 0
    for text, lower, old_differs, fast_differs in CASES:
        old, fast, reference = made[lower]
        expected = pieces(reference.encode(text, add_special_tokens=False).ids)
        old_pieces = pieces(old.tokenize([text]).flat_values.numpy())
        fast_pieces = pieces(fast.tokenize([text]).flat_values.numpy())
        name = "uncased" if lower else "cased"
        print(f"{name} {text!a}: BertTokenizer {old_pieces}; FastBertTokenizer {fast_pieces}; BERT {expected}")
        wrong += (old_pieces != expected) != old_differs or (fast_pieces != expected) != fast_differs
sys.exit(wrong)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
