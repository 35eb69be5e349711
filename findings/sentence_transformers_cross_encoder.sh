#!/bin/bash
# sentence-transformers: load_best_model_at_end gives a CrossEncoder with LoRA another random classifier.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   sentence-transformers 6.2.0, transformers 5.22.2, peft 0.21.2
#   LoRA for SEQ_CLS: classifier is trained False; scores [0.74, 0.7], loaded [0.54, 0.51], again [0.45, 0.48]
#     load_best_model_at_end: loss of the best 0.755, of the model at the end 0.826
#   with modules_to_save: classifier is trained True; scores [0.72, 0.67], loaded [0.72, 0.67], again [0.72, 0.67]
#     load_best_model_at_end: loss of the best 0.726, of the model at the end 0.726
# Expected: at the end the model has the loss of its best checkpoint, and a saved one gives its scores again. A task of
#   SEQ_CLS means that the new classifier is trained and saved with the adapter, as in get_peft_model.
# Seen: CrossEncoder.add_adapter hands the configuration to transformers' `add_adapter`, where the task adds nothing to
#   modules_to_save, as a comment on huggingface/sentence-transformers#3936 says. So the classifier, which a base such
#   as BERT does not have, is frozen at random values and in no checkpoint. load_best_model_at_end and resuming build a
#   model from the checkpoint, which draws a new classifier, and copy all of that over the model in training
#   (`_load_from_checkpoint`, base/trainer.py). Each loading draws another one. The only sign is transformers' report of
#   missing weights, which says the same whenever a new model is made.
# Affects rerankers with LoRA on a base without a head: what was trained to fit one random classifier is evaluated, kept
#   and ranked with another, in part the other way round. modules_to_save=["classifier"] in the configuration ("score"
#   in decoders) is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 \
  accelerate==1.15.0 datasets==5.2.0 sentence-transformers==6.2.0 2> /dev/null
export OMP_NUM_THREADS=1
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
import transformers
from datasets import Dataset
from sentence_transformers import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f".split()
CONFIG = transformers.BertConfig(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    vocab_size=len(WORDS),
    initializer_range=0.3,
)
LORA = {"r": 4, "target_modules": ["query", "value"]}
PAIRS = [("a b", "c d"), ("a c", "e f")]
DATA = Dataset.from_dict({"text": ["a b", "a c"] * 4, "other": ["c d", "e f"] * 4, "label": [1.0, 0.0] * 4})


def new_base():
    """A folder with a small BERT without a classifier."""
    torch.manual_seed(0)
    base = tempfile.mkdtemp()
    transformers.BertModel(CONFIG).save_pretrained(base)
    transformers.BertTokenizerFast(vocab={word: number for number, word in enumerate(WORDS)}).save_pretrained(base)
    return base


def train(base, best, **options):
    """A model after training, the classifier that it began with, its lowest loss and the one at the end."""
    torch.manual_seed(1)
    model = CrossEncoder(base, num_labels=1)
    model.add_adapter(peft.LoraConfig(task_type="SEQ_CLS", **LORA, **options))
    start = classifier(model).detach().clone()
    arguments = CrossEncoderTrainingArguments(
        tempfile.mkdtemp(),
        num_train_epochs=2,
        learning_rate=1e-2,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=best,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = CrossEncoderTrainer(model, arguments, train_dataset=DATA, eval_dataset=DATA)
    with contextlib.redirect_stdout(sys.stderr):
        trainer.train()
        after = trainer.evaluate()["eval_loss"]
    seen = [one["eval_loss"] for one in trainer.state.log_history if "eval_loss" in one]
    return model, start, min(seen), after


def classifier(model):
    layer = model.model.classifier
    return layer.modules_to_save["default"].weight if hasattr(layer, "modules_to_save") else layer.weight


def scores(model):
    return [round(float(score), 2) for score in model.predict(PAIRS)]


names = "sentence-transformers", "transformers", "peft"
print(", ".join(f"{name} {version(name)}" for name in names))
base, results = new_base(), []
for title, options in ("LoRA for SEQ_CLS", {}), ("with modules_to_save", {"modules_to_save": ["classifier"]}):
    model, start, *_ = train(base, False, **options)
    trained = not torch.equal(start, classifier(model))
    saved = tempfile.mkdtemp()
    model.save_pretrained(saved)
    found = [scores(CrossEncoder(saved)) for _ in range(2)]
    print(f"{title}: classifier is trained {trained}; scores {scores(model)}, loaded {found[0]}, again {found[1]}")
    same = [one == scores(model) for one in found]
    *_, lowest, after = train(base, True, **options)
    print(f"  load_best_model_at_end: loss of the best {lowest:.3f}, of the model at the end {after:.3f}")
    results.append((trained, *same, abs(lowest - after) < 1e-3))
sys.exit(results != [(False, False, False, False), (True, True, True, True)])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
