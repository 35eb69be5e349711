#!/bin/bash
# SetFit: DistillationTrainer teaches the student that every two texts mean the same, whatever the teacher says.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   setfit 1.2.0, sentence-transformers 6.2.0
#   labels of the pairs of three texts with the cosines 0.2, 0.3 and 0.4: [1.0]
#   teacher: cosine 0.79 in a class, 0.02 between classes; accuracy 1.00
#   student: cosine 0.91 in a class, 0.90 between classes; accuracy 0.44
#   student, with the teacher's cosines: cosine 0.81 in a class, 0.03 between classes; accuracy 1.00
# Expected: the teacher is "the model to mimic": the student is trained on pairs of texts with the cosines that the
#   teacher's embeddings of these texts have.
# Seen: each pair has the label 1. `ContrastiveDistillationDataset.__init__` (sampler.py) calls the constructor of its
#   parent with the label 0 for each text, and sets the numbers of the texts afterwards. But the parent already makes
#   the pairs, with 0 for the numbers of both texts. So generate_pairs takes cos_sim_matrix[0][0] for each of them, the
#   similarity of the first text with itself. There is no message, and the loss falls to almost 0.
# Affects whoever distils a classifier into a smaller one: training moves all embeddings to one direction, and the
#   classifier that is then fitted on them is little better than a guess. A get_dataset of one's own, as below, helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 sentence-transformers==6.2.0 \
  setfit==1.2.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import io
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import setfit
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from setfit.sampler import ContrastiveDistillationDataset
from sklearn.linear_model import LogisticRegression
from tokenizers import Tokenizer, models, pre_tokenizers

CLASSES, WORDS = 3, 20
RANDOM = np.random.default_rng(0)


def texts(number):
    """Texts of five words, each of a class with words of its own, and their classes."""
    labels = [index % CLASSES for index in range(number)]
    return [" ".join(f"{label}_{word}" for word in RANDOM.choice(WORDS, 5)) for label in labels], labels


def new_model(seed, size):
    """A classifier on means of random word embeddings."""
    tokenizer = Tokenizer(
        models.WordLevel({f"{index // WORDS}_{index % WORDS}": index for index in range(CLASSES * WORDS)}, "0_0")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    weights = np.random.default_rng(seed).normal(size=(CLASSES * WORDS, size)).astype("float32")
    body = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")
    return setfit.SetFitModel(body, LogisticRegression())


def arguments(folder):
    more = {"report_to": "none", "save_strategy": "no", "show_progress_bar": False}
    return setfit.TrainingArguments(folder, batch_size=32, num_epochs=3, body_learning_rate=0.1, **more)


class WithTeachersCosines(setfit.DistillationTrainer):
    """The trainer with the labels that are meant."""

    def get_dataset(self, x, y, args, max_pairs=-1):
        vectors = self.teacher_model.model_body.encode(x)
        first, second = np.triu_indices(len(x))
        cosines = util.cos_sim(vectors, vectors).numpy()[first, second].tolist()
        columns = {"sentence_1": [x[i] for i in first], "sentence_2": [x[i] for i in second], "label": cosines}
        return Dataset.from_dict(columns), losses.CosineSimilarityLoss(self.model.model_body)


def train(trainer):
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()


def show(title, model):
    """The mean cosines of texts of the same class and of different classes, and the accuracy on new texts."""
    vectors = model.model_body.encode(TEST[0], normalize_embeddings=True)
    cosines, same = vectors @ vectors.T, np.equal.outer(TEST[1], TEST[1])
    found = [float(cosines[same].mean()), float(cosines[~same].mean())]
    found.append(float((np.asarray(model.predict(TEST[0])) == np.asarray(TEST[1])).mean()))
    print(f"{title}: cosine {found[0]:.2f} in a class, {found[1]:.2f} between classes; accuracy {found[2]:.2f}")
    return found


TEST = texts(300)
print(", ".join(f"{name} {version(name)}" for name in ("setfit", "sentence-transformers")))
similarities = torch.tensor([[1, 0.2, 0.3], [0.2, 1, 0.4], [0.3, 0.4, 1]])
labels = {float(pair["label"]) for pair in ContrastiveDistillationDataset(["a", "b", "c"], similarities)}
print(f"labels of the pairs of three texts with the cosines 0.2, 0.3 and 0.4: {sorted(labels)}")
with tempfile.TemporaryDirectory() as folder:
    teacher, examples = new_model(0, 32), dict(zip(("text", "label"), texts(30), strict=True))
    train(setfit.Trainer(teacher, arguments(folder), Dataset.from_dict(examples)))
    results = [show("teacher", teacher)]
    data = Dataset.from_dict({"text": texts(60)[0]})
    for title, trainer in ("", setfit.DistillationTrainer), (", with the teacher's cosines", WithTeachersCosines):
        student = new_model(1, 16)
        train(trainer(teacher, student, arguments(folder), data))
        results.append(show(f"student{title}", student))
good = [result[2] > 0.9 and result[1] < 0.3 for result in (results[0], results[2])]
bad = results[1][2] < 0.6 and results[1][1] > 0.8
sys.exit(labels != {1.0} or not all(good) or not bad)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
