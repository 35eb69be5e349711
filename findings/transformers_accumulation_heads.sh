#!/bin/bash
# transformers: for BERT and other encoders, gradient_accumulation_steps multiplies the loss and the gradient.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   transformers 5.24.0, peft 0.21.2; loss and norm of the gradient for 16 examples
#   Llama, causal: 3.933 and 0.643 at once, 3.933 and 0.643 in 4 steps
#   BERT, question answering: 1.789 and 1.407 at once, 1.789 and 1.407 in 4 steps
#   BERT, classes, corrected: 1.099 and 0.080 at once, 1.099 and 0.080 in 4 steps
#   BERT, classes: 1.099 and 0.080 at once, 4.398 and 0.321 in 4 steps
#   BERT, classes, LoRA: 1.099 and 0.064 at once, 4.398 and 0.255 in 4 steps
#   BERT, tokens: 1.114 and 0.539 at once, 4.457 and 2.155 in 4 steps
#   BERT, masked: 3.900 and 1.065 at once, 15.599 and 4.262 in 4 steps
#   Llama, classes: 1.121 and 1.432 at once, 4.484 and 5.729 in 4 steps
# Expected: 4 batches of 4 examples that are accumulated give the gradient of one batch of 16, as documented.
#   The examples have the same length here, and there is no dropout.
# Seen: `Trainer` (trainer.py) takes a model whose forward has **kwargs for one that divides its loss by
#   num_items_in_batch, and leaves out its own division by the number of steps. The heads of BERT, RoBERTa, DistilBERT,
#   ModernBERT and Llama for sequences and tokens have **kwargs, and average over the small batch. So neither divides.
#   Masked language models of BERT are concerned, too; causal ones and question answering are not. There is no message
#   but a loss that is larger. Issue 47688 of transformers describes it. With AdamW the size of a gradient cancels out,
#   but not in clipping: max_grad_norm=1 then cuts a gradient whose norm is 0.25 for 4 steps, and 0.03 for 32.
# Affects training of classifiers with or without adapters of PEFT with accumulated batches: comparisons of batch sizes,
#   learning rates of SGD, clipping, and logged losses. `trainer.loss_is_scaled_for_ga = False` helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 accelerate==1.15.0 \
  2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import peft
import torch
import transformers

SIZES = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "pad_token_id": 0, "num_labels": 3,
}
DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
BERT = transformers.BertConfig(**SIZES, **DROPOUT)
SPANS = transformers.BertConfig(**{**SIZES, "num_labels": 2}, **DROPOUT)
CLASSIFIER = transformers.BertForSequenceClassification
LLAMA = transformers.LlamaConfig(**SIZES)
TOKENS = torch.randint(1, 50, (16, 6), generator=torch.Generator().manual_seed(0))


def measure(kind, config, labels, steps, lora=False, **options):
    """The loss and the norm of the gradient that the Trainer logs for a step with all 16 examples."""
    torch.manual_seed(0)
    model = kind(config)
    if lora:
        model = peft.get_peft_model(model, peft.LoraConfig("SEQ_CLS", r=4, target_modules=["query", "value"]))
    data = [{"input_ids": row, "attention_mask": torch.ones_like(row)} for row in TOKENS]
    for row, example in enumerate(data):
        example.update({name: values[row] for name, values in labels.items()})
    with tempfile.TemporaryDirectory() as folder:
        args = transformers.TrainingArguments(
            folder, per_device_train_batch_size=16 // steps, gradient_accumulation_steps=steps, max_steps=1,
            logging_steps=1, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, max_grad_norm=1e9,
        )
        trainer = transformers.Trainer(model, args, train_dataset=data)
        for name, value in options.items():
            setattr(trainer, name, value)
        trainer.train()
    logged = trainer.state.log_history[0]
    return logged["loss"], logged["grad_norm"]


classes = {"labels": torch.arange(16) % 3}
tags = {"labels": TOKENS % 3}
spans = {"start_positions": torch.arange(16) % 6, "end_positions": torch.full((16,), 5)}
masked = {"labels": TOKENS}
results = []
sys.stdout, shown = sys.stderr, sys.stdout
versions = f"transformers {transformers.__version__}, peft {peft.__version__}"
print(f"{versions}; loss and norm of the gradient for 16 examples", file=shown)
for title, *case, options in (
    ("Llama, causal", transformers.LlamaForCausalLM, LLAMA, masked, {}),
    ("BERT, question answering", transformers.BertForQuestionAnswering, SPANS, spans, {}),
    ("BERT, classes, corrected", CLASSIFIER, BERT, classes, {"loss_is_scaled_for_ga": False}),
    ("BERT, classes", CLASSIFIER, BERT, classes, {}),
    ("BERT, classes, LoRA", CLASSIFIER, BERT, classes, {"lora": True}),
    ("BERT, tokens", transformers.BertForTokenClassification, BERT, tags, {}),
    ("BERT, masked", transformers.BertForMaskedLM, BERT, masked, {}),
    ("Llama, classes", transformers.LlamaForSequenceClassification, LLAMA, classes, {}),
):
    once, split = measure(*case, 1, **options), measure(*case, 4, **options)
    print(f"{title}: {once[0]:.3f} and {once[1]:.3f} at once, {split[0]:.3f} and {split[1]:.3f} in 4 steps", file=shown)
    results.append([round(after / before, 1) for before, after in zip(once, split)])
sys.exit(results != 3 * [[1, 1]] + 5 * [[4, 4]])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
