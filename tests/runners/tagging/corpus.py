"""A made-up corpus that a tiny base learns: people are animals, places are big."""

import json
import pathlib

import numpy as np

PEOPLE, PLACES, OTHERS = ("cat", "dog"), ("house", "mat"), ("the", "a", "ran", "sat")
SIZES = {"train": 48, "dev": 12, "test": 6}
# `U+FE0F` has no word piece; the longest sentences need several windows.
TINY = ("--max_seq_length=12", "--stride=3", "--train_batch_size=8", "--learning_rate=1e-2")


def sentences(count, seed=0):
    """Pairs of words and IOB2 tags."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        words, tags = [], []
        while len(words) < (14 if number % 5 == 0 else 4):
            kind = rng.integers(4)
            if kind == 0:
                words, tags = [*words, str(rng.choice(PEOPLE))], [*tags, "B-PER"]
            elif kind == 1:
                words = [*words, "big", str(rng.choice(PLACES))]
                tags = [*tags, "B-LOC", "I-LOC"]
            else:
                words, tags = [*words, str(rng.choice(OTHERS))], [*tags, "O"]
        made.append((words, tags))
    made[0][0].append("\ufe0f")
    made[0][1].append("O")
    return made


def columns(rows, separator="\t"):
    """The text of a CoNLL file."""
    blocks = ["".join(f"{w}{separator}{t}\n" for w, t in zip(*row, strict=True)) for row in rows]
    return "-DOCSTART-\n\n" + "\n".join(blocks)


def json_lines(rows):
    """The text of a file of JSON lines, with a key of its own."""
    objects = [{"id": i, "tokens": row[0], "tags": row[1]} for i, row in enumerate(rows)]
    return "".join(json.dumps(one) + "\n" for one in objects)


def write(folder, extension="conll", convert=lambda tags: tags, sizes=SIZES):
    """Writes train, dev and test files; returns the folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, count) in enumerate(sizes.items()):
        rows = [(words, list(convert(tags))) for words, tags in sentences(count, seed)]
        text = columns(rows) if extension == "conll" else json_lines(rows)
        (folder / f"{split}.{extension}").write_text(text)
    return folder
