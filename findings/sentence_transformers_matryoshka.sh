#!/bin/bash
# sentence-transformers: MatryoshkaLoss normalizes embeddings, so losses of dot products (margins of a teacher) fail.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   sentence-transformers 6.2.0; a teacher with margins of about 11
#   MarginMSELoss: loss 103.9, after training 0.0; margins off by 0.0 on average
#   MatryoshkaLoss of it, dimensions [32]: loss 110.9, after training 74.4; margins off by 69.3 on average
#   MatryoshkaLoss of it, dimensions [32, 16]: loss 224.1, after training 148.7; margins off by 69.6 on average
#   MultipleNegativesRankingLoss of cosines: 6.00, in MatryoshkaLoss 6.00
#   MultipleNegativesRankingLoss of dot products: 8.21, in MatryoshkaLoss 2.77
# Expected: a modifier "that allows you to use other loss functions", for "any" inputs and labels. At the full
#   dimension alone, MatryoshkaLoss is the loss that it is given.
# Seen: `shrink` (losses/matryoshka.py) cuts embeddings off and then normalizes them, also at the full dimension. That
#   is harmless for cosines, but MarginMSELoss and DistillKLDivLoss compare dot products by default, with the scores of
#   a teacher that may be far above 1. A margin of unit vectors is at most 2, so that the loss cannot fall, and nothing
#   trains the lengths, which the dot products of the model in use depend on. There is no message.
# Affects distillation of rerankers (MS MARCO with MarginMSELoss) into models that can be cut off, and
#   MultipleNegativesRankingLoss with dot products. Scores of a teacher that are scaled to cosines, and cosines in use,
#   help.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 sentence-transformers==6.2.0 \
  2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

ROWS, SIZE, STEPS = 16, 32, 300
KINDS = ("query", "right", "wrong")


def new_model():
    """Embeddings of single words, with dot products of some units."""
    words = [f"{kind}{row}" for kind in KINDS for row in range(ROWS)]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, words[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    weights = np.random.default_rng(0).normal(size=(len(words), SIZE)).astype("float32")
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")


def texts(kind):
    return [f"{kind}{row}" for row in range(ROWS)]


def scores(model):
    """The scores of the right and of the wrong text for each query, with the dot product."""
    query, right, wrong = (torch.from_numpy(model.encode(texts(kind))) for kind in KINDS)
    return torch.stack([util.pairwise_dot_score(query, right), util.pairwise_dot_score(query, wrong)], 1)


def train(dimensions, teacher):
    """The loss before and after training, and the mean error of the model's margins."""
    model = new_model()
    loss = losses.MarginMSELoss(model)
    if dimensions:
        loss = losses.MatryoshkaLoss(model, loss, dimensions)
    optimizer, values = torch.optim.Adam(model.parameters(), 0.02), []
    for _ in range(STEPS):
        value = loss([model.tokenize(texts(kind)) for kind in KINDS], teacher)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(float(value))
    found = scores(model)
    wanted = teacher[:, 0] - teacher[:, 1]
    return values[0], values[-1], float((found[:, 0] - found[:, 1] - wanted).abs().mean())


torch.manual_seed(0)
teacher = torch.stack([6 + 4 * torch.rand(ROWS), 2 * torch.rand(ROWS) - 4], 1)
print(f"sentence-transformers {version('sentence-transformers')}; a teacher with margins of about 11")
results = []
for title, dimensions in {
    "MarginMSELoss": None,
    f"MatryoshkaLoss of it, dimensions [{SIZE}]": [SIZE],
    f"MatryoshkaLoss of it, dimensions [{SIZE}, {SIZE // 2}]": [SIZE, SIZE // 2],
}.items():
    before, after, error = train(dimensions, teacher)
    print(f"{title}: loss {before:.1f}, after training {after:.1f}; margins off by {error:.1f} on average")
    results.append((after, error))
model, pairs = new_model(), {}
for name, loss in {
    "cosines": losses.MultipleNegativesRankingLoss(model),
    "dot products": losses.MultipleNegativesRankingLoss(model, scale=1.0, similarity_fct=util.dot_score),
}.items():
    wrapped = losses.MatryoshkaLoss(model, loss, [SIZE])
    pairs[name] = [float(one([model.tokenize(texts(kind)) for kind in KINDS[:2]], None)) for one in (loss, wrapped)]
    print(f"MultipleNegativesRankingLoss of {name}: {pairs[name][0]:.2f}, in MatryoshkaLoss {pairs[name][1]:.2f}")
right = results[0][0] < 0.1 and results[0][1] < 0.1 and abs(np.subtract(*pairs["cosines"])) < 1e-4
wrong = all(after > 10 and error > 1 for after, error in results[1:]) and abs(np.subtract(*pairs["dot products"])) > 0.5
sys.exit(not right or not wrong)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
