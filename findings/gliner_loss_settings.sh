#!/bin/bash
# GLiNER: label_smoothing, prob_margin and negatives are ignored or act as another one, by the kind of model.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   gliner 0.2.24, transformers 5.22.2; losses for the wanted ones
#   UniEncoderSpan: all right
#   UniEncoderToken: negatives 0 ignored (60.01 for 2.87)
#   BiEncoderSpan: label_smoothing 0.4 as prob_margin (13.37 for 33.30), prob_margin 0.3 ignored (35.65 for 17.28)
#   BiEncoderToken: negatives 0 ignored (62.58 for 2.70)
#   fine_tune=False: 23 of 23 variables of the encoder are trained
# Expected: the settings of TrainingArguments act as described on each kind of model: label_smoothing on the targets,
#   prob_margin on the probabilities of negatives, and negatives is the "ratio of negative samples to use". With
#   fine_tune=False ("whether to fine-tune the encoder") the encoder is not trained.
# Seen: only UniEncoderSpanModel has all of them (modeling/base.py). `BiEncoderSpanModel.loss`, and that of the model
#   with a decoder, have no prob_margin, and hand label_smoothing to `_loss` in its place. The two token models do not
#   hand on the masking, so that `_loss` never leaves out a negative. All this is swallowed by **kwargs, without a
#   message. fine_tune is read nowhere.
# Affects trainings of bi-encoders and of token models: label smoothing against noisy labels becomes a margin that
#   makes negatives count less, and sampling of negatives, which most entity types need, does not happen.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 gliner==0.2.24 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import torch
import transformers
from gliner import config
from gliner.modeling import base

SETTINGS = {
    "label_smoothing 0.4": {"label_smoothing": 0.4},
    "prob_margin 0.3": {"prob_margin": 0.3},
    "negatives 0": {"negatives": 0.0},
}
KINDS = ("UniEncoderSpan", "UniEncoderToken", "BiEncoderSpan", "BiEncoderToken")
BERT = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 1, "vocab_size": 50}


def new_model(kind, **options):
    """A small model of this kind, with the encoders from a configuration."""
    encoder = transformers.BertConfig(**BERT)
    if kind.startswith("Bi"):
        options |= {"labels_encoder": "small", "labels_encoder_config": encoder}
    options |= {"encoder_config": encoder, "model_name": "small", "hidden_size": 16}
    return getattr(base, f"{kind}Model")(getattr(config, f"{kind}Config")(**options))


def wanted(scores, labels, label_smoothing=0.0, prob_margin=0.0, negatives=1.0):
    """The sum of losses as the settings are described, for negatives 0 or 1."""
    used = (labels == 1) | (negatives == 1)
    targets = labels * (1 - label_smoothing) + 0.5 * label_smoothing
    positive = scores.sigmoid()
    losses = -targets * positive.log() - (1 - targets) * (1 - (positive - prob_margin)).clamp(max=1).log()
    return float((losses * used).sum())


torch.manual_seed(0)
print(f"gliner {version('gliner')}, transformers {transformers.__version__}; losses for the wanted ones")
seen = {}
for kind in KINDS:
    # Spans are of words, widths and classes; tokens of words, classes and start, end and inside.
    shape, name = ((1, 6, 2, 3), "mask_label") if "Span" in kind else ((1, 6, 3, 3), "mask")
    scores, labels = 0.5 + torch.rand(shape), (torch.rand(shape) < 0.2).float()
    masks = {"prompts_embedding_mask": torch.ones(1, 3), name: torch.ones(shape[: 3 if "Span" in kind else 2])}
    loss, found = new_model(kind).loss, []
    for title, options in SETTINGS.items():
        one = float(loss(scores, labels, **masks, reduction="sum", masking="global", **options))
        plain = float(loss(scores, labels, **masks, reduction="sum", masking="global"))
        value = wanted(scores, labels, **options)
        margin = wanted(scores, labels, prob_margin=0.4)
        meanings = {"right": value, "ignored": plain, "as prob_margin": margin}
        meaning = next((name for name, other in meanings.items() if abs(one - other) < 1e-3), "else")
        if meaning != "right":
            found.append(f"{title} {meaning} ({one:.2f} for {value:.2f})")
            seen[kind, title.split()[0]] = meaning
    print(f"{kind}: " + (", ".join(found) or "all right"))
encoder = new_model("UniEncoderSpan", fine_tune=False).token_rep_layer
trained = sum(one.requires_grad for one in encoder.parameters())
print(f"fine_tune=False: {trained} of {len(list(encoder.parameters()))} variables of the encoder are trained")
known = {
    ("UniEncoderToken", "negatives"): "ignored",
    ("BiEncoderSpan", "label_smoothing"): "as prob_margin",
    ("BiEncoderSpan", "prob_margin"): "ignored",
    ("BiEncoderToken", "negatives"): "ignored",
}
sys.exit(seen != known or trained != len(list(encoder.parameters())))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
