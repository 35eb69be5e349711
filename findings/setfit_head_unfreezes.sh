#!/bin/bash
# SetFit: training the head unfreezes the whole body, so a second training of a LoRA trains the base and loses it.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   setfit 1.2.0, sentence-transformers 6.2.0, peft 0.21.2
#   parameters to train: 256 of 13952
#   after the first training: 0 of 13696 of the base changed; 13952 to train; loaded, its answers are off by 0%
#   after the second training: 13408 of 13696 of the base changed; 13952 to train; loaded, its answers are off by 105%
# Expected: training of a differentiable head with end_to_end=False freezes the body meanwhile, and gives it back as it
#   was: with LoRA only the factors are trained, and layers that were frozen stay frozen.
# Seen: `SetFitModel.fit` (modeling.py) calls freeze("body") before and unfreeze("body") after, and `_freeze_or_not`
#   sets requires_grad of every parameter to True. So the next Trainer, with more examples or other arguments,
#   fine-tunes all of the body at the learning rate of LoRA. Saving a body with an adapter writes the adapter alone, so
#   that the loaded model has the old base, and its head gets other embeddings. There is no message.
# Affects LoRA and frozen layers with a SetFitHead, where a model is trained again. Freezing the base again before each
#   training, or a head of scikit-learn, helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 sentence-transformers==6.2.0 \
  setfit==1.2.0 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import io
import pathlib
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import setfit
import torch
from datasets import Dataset
from peft import LoraConfig
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel, BertTokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{index}" for index in range(40))]
LABELS = [index % 2 for index in range(8)]
RANDOM = np.random.default_rng(0)
TEXTS = [" ".join(f"w{20 * label + word}" for word in RANDOM.choice(20, 4)) for label in LABELS]
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 2}


def new_body(folder):
    """A small BERT with LoRA."""
    torch.manual_seed(0)
    pathlib.Path(folder, "vocab.txt").write_text("\n".join(WORDS))
    BertModel(BertConfig(vocab_size=len(WORDS), **SIZES)).save_pretrained(folder)
    BertTokenizer(f"{folder}/vocab.txt").save_pretrained(folder)
    body = SentenceTransformer(folder, device="cpu")
    body.add_adapter(LoraConfig(r=2, target_modules=["query", "value"]))
    return body


def trainable(body):
    return sum(one.numel() for one in body.parameters() if one.requires_grad)


def base(body):
    return torch.cat([one.detach().flatten() for name, one in body.named_parameters() if "lora_" not in name])


def off(body, folder):
    """How far the embeddings of the saved and loaded body are from those of the trained one."""
    body.save(folder)
    found, wanted = SentenceTransformer(folder, device="cpu").encode(TEXTS), body.encode(TEXTS)
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


print(", ".join(f"{name} {version(name)}" for name in ("setfit", "sentence-transformers", "peft")))
with tempfile.TemporaryDirectory() as folder:
    for name in "base", "run", "saved":
        pathlib.Path(folder, name).mkdir()
    body = new_body(f"{folder}/base")
    model = setfit.SetFitModel(body, setfit.SetFitHead(16, 2, device="cpu"))
    more = {"report_to": "none", "save_strategy": "no", "show_progress_bar": False}
    rates = {"body_learning_rate": 0.01, "batch_size": 8, "num_epochs": (1, 1), "num_iterations": 2}
    arguments = setfit.TrainingArguments(f"{folder}/run", **rates, **more)
    data = Dataset.from_dict({"text": TEXTS, "label": LABELS})
    print(f"parameters to train: {trainable(body)} of {trainable(body) + len(base(body))}")
    results = []
    for call in "first", "second":
        before = base(body)
        with contextlib.redirect_stdout(io.StringIO()):
            setfit.Trainer(model, arguments, data).train()
        moved = int((base(body) != before).sum())
        results.append((moved, trainable(body), off(body, f"{folder}/saved")))
        print(f"after the {call} training: {moved} of {len(before)} of the base changed;", end=" ")
        print(f"{results[-1][1]} to train; loaded, its answers are off by {results[-1][2]:.0%}")
everything = trainable(body) == len(base(body)) + 256
(first, _, same), (second, _, other) = results
sys.exit(not everything or first != 0 or second < 1000 or same > 1e-4 or other < 0.02)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
