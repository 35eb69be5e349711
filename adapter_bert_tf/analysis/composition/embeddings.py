"""What a HyperFormer has learned of its tasks: their embeddings, and how alike they are.

The picture is Figure 3 of Mahabadi et al. 2021: the embeddings' first two principal components.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
from adapter_bert_tf.adapters.methods.hypernetwork import embedding_name
from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store import contents, load_adapter

NAME, SIMILARITY = "task_embeddings", "task_similarity"
FILES = (f"{NAME}.csv", f"{SIMILARITY}.csv", f"{NAME}.png", f"{NAME}.svg")


def read(folder: str) -> tuple[list[str], np.ndarray]:
    """(names of the tasks, their embeddings `[tasks, size]`) of an adapter directory.

    Raises:
      InputError: when it is damaged, no HyperFormer, or one of a single task.
    """
    saved = load_adapter(folder)
    config = contents.adapter_of(saved.config)
    if not isinstance(config, HyperFormerConfig):
        raise InputError(
            f"{folder} is no HyperFormer: there are no task embeddings in it. Name the adapter "
            "directory of a run with --tuning=hyperformer or hyperformer++."
        )
    if len(config.tasks) < 2:
        raise InputError(f"{folder} has one task, and nothing to compare it with.")
    return list(config.tasks), np.stack([saved.weights[embedding_name(t)] for t in config.tasks])


def cosines(embeddings: np.ndarray) -> np.ndarray:
    """Cosine similarities `[tasks, tasks]`; 0 with an embedding of zeros."""
    length = np.linalg.norm(embeddings, axis=1, keepdims=True)
    unit = embeddings / np.where(length > 0, length, 1)
    return unit @ unit.T


def components(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two principal components: `[tasks, 2]`, and their shares of the variance `[2]`."""
    centred = embeddings.astype(np.float64) - embeddings.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    found = np.pad(left * sizes, ((0, 0), (0, 2)))[:, :2]
    signs = np.sign(found[np.abs(found).argmax(0), [0, 1]])  # Of both signs one is chosen.
    shares = np.pad(sizes**2, (0, 2))[:2] / max(float((sizes**2).sum()), 1e-30)
    return found * np.where(signs == 0, 1, signs), shares


def draw(tasks: Sequence[str], embeddings: np.ndarray) -> Any:
    """The figure: a named point for each task."""
    from matplotlib.figure import Figure

    points, shares = components(embeddings)
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.scatter(points[:, 0], points[:, 1], s=28, color="#1f4e79", zorder=2)
    for task, point in zip(tasks, points, strict=True):
        axes.annotate(
            printable(task)[:24], point, xytext=(5, 4), textcoords="offset points",
            fontsize=9, parse_math=False,
        )  # fmt: skip
    axes.set_xlabel(f"first component ({shares[0]:.0%} of the variance)")
    axes.set_ylabel(f"second ({shares[1]:.0%})")
    axes.grid(color="#dddddd", zorder=0)
    axes.margins(0.18)
    return figure


def shown(tasks: Sequence[str], alike: np.ndarray) -> str:
    """The similarities as lines of a terminal."""
    width = max(*map(len, tasks), 6) + 2
    lines = [" " * width + "".join(f"{task:>{width}}" for task in tasks)]
    for task, row in zip(tasks, alike, strict=True):
        lines.append(f"{task:<{width}}" + "".join(f"{value:>{width}.2f}" for value in row))
    return "\n".join(lines)


def write(folder: str, out: str, command: str) -> list[str]:
    """Writes the tables and the picture; returns their paths. Raises `InputError`."""
    outputs.require(out, FILES)
    tasks, embeddings = read(folder)
    alike = cosines(embeddings)
    print(f"Cosine similarities of task embeddings:\n{shown(tasks, alike)}")
    numbers = [f"{i}" for i in range(embeddings.shape[1])]
    of_tasks = [[t, *(f"{v:.6g}" for v in row)] for t, row in zip(tasks, embeddings, strict=True)]
    pairs = [[t, *(f"{v:.4f}" for v in row)] for t, row in zip(tasks, alike, strict=True)]
    made = {
        f"{NAME}.csv": outputs.table(["task", *numbers], of_tasks),
        f"{SIMILARITY}.csv": outputs.table(["task", *tasks], pairs),
    }
    return outputs.write(out, made | outputs.pictures(draw(tasks, embeddings), NAME, command))


def run(parsed: Any, command: str) -> None:
    """Writes tables and picture of a HyperFormer. Raises `InputError`."""
    print(", ".join(write(parsed.adapter_dir, parsed.output_dir, command)))
