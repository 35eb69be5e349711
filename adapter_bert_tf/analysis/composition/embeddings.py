"""Task embeddings of a HyperFormer and their similarities.

The figure is Figure 3 of Mahabadi et al. 2021: the embeddings' first two principal components.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig, embedding_name
from adapter_bert_tf.adapters.registry import of_kind
from adapter_bert_tf.analysis import outputs, plots
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store import contents, load_adapter

NAME, SIMILARITY = "task_embeddings", "task_similarity"
FILES = (*outputs.file_names(NAME), f"{SIMILARITY}.csv")


def run(parsed: Any, command: str) -> None:
    """Writes tables and figure of the HyperFormer in `--adapter_dir`. Raises `InputError`."""
    outputs.require_writable(parsed.output_dir, FILES)
    tasks, embeddings = read(parsed.adapter_dir)
    similarities = cosine_similarities(embeddings)
    print(f"Cosine similarities of task embeddings:\n{_format_square(tasks, similarities)}")
    columns = [str(i) for i in range(embeddings.shape[1])]
    tables = {
        f"{NAME}.csv": _table(tasks, columns, embeddings, ".6g"),
        f"{SIMILARITY}.csv": _table(tasks, tasks, similarities, ".4f"),
    }
    print(outputs.write(parsed.output_dir, tables, draw(tasks, embeddings), NAME, command))


def read(folder: str) -> tuple[list[str], np.ndarray]:
    """(task names, their embeddings `[tasks, size]`) of a HyperFormer. Raises `InputError`."""
    saved = load_adapter(folder)
    config = of_kind(contents.adapter_of(saved.config), HyperFormerConfig)
    if config is None:
        raise InputError(
            f"{folder} is not a HyperFormer and has no task embeddings. Give the adapter folder of "
            "a run with --tuning=hyperformer or hyperformer++."
        )
    if len(config.tasks) < 2:
        raise InputError(f"{folder} has only one task. Give a HyperFormer of two or more.")
    return list(config.tasks), np.stack([saved.weights[embedding_name(t)] for t in config.tasks])


def cosine_similarities(embeddings: np.ndarray) -> np.ndarray:
    """Cosine similarities `[tasks, tasks]`; 0 for an embedding of zeros."""
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    unit = embeddings / np.where(lengths > 0, lengths, 1)
    return unit @ unit.T


def principal_components(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two principal components, `[tasks, 2]`, and their proportions of the variance, `[2]`."""
    centred = embeddings.astype(np.float64) - embeddings.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    projections = np.pad(left * sizes, ((0, 0), (0, 2)))[:, :2]
    signs = np.sign(projections[np.abs(projections).argmax(0), [0, 1]])  # The sign is arbitrary.
    proportions = np.pad(sizes**2, (0, 2))[:2] / max(float((sizes**2).sum()), 1e-30)
    return projections * np.where(signs == 0, 1, signs), proportions


def draw(tasks: Sequence[str], embeddings: np.ndarray) -> Any:
    """Draws a named point for each task."""
    points, proportions = principal_components(embeddings)
    figure = plots.new_figure(5.2, 4.2)
    axes = figure.subplots()
    axes.scatter(points[:, 0], points[:, 1], s=28, color="#1f4e79", zorder=2)
    for task, point in zip(tasks, points, strict=True):
        axes.annotate(
            printable(task)[:24], point, xytext=(5, 4), textcoords="offset points",
            fontsize=9, parse_math=False
        )  # fmt: skip
    axes.set_xlabel(f"first component ({proportions[0]:.0%} of the variance)")
    axes.set_ylabel(f"second ({proportions[1]:.0%})")
    axes.grid(color="#dddddd", zorder=0)
    axes.margins(0.18)
    # Of two tasks the second component is a rounding error, which would fill the axis.
    axes.set_aspect("equal", adjustable="datalim")
    return figure


def _format_square(tasks: Sequence[str], similarities: np.ndarray) -> str:
    """Formats the similarities as lines of text."""
    width = max(*map(len, tasks), 6) + 2
    lines = [" " * width + "".join(f"{task:>{width}}" for task in tasks)]
    for task, row in zip(tasks, similarities, strict=True):
        lines.append(f"{task:<{width}}" + "".join(f"{value:>{width}.2f}" for value in row))
    return "\n".join(lines)


def _table(
    tasks: Sequence[str], columns: Sequence[str], values: np.ndarray, number_format: str
) -> bytes:
    rows = [
        [task, *(format(value, number_format) for value in row)]
        for task, row in zip(tasks, values, strict=True)
    ]
    return outputs.csv_table(["task", *columns], rows)
