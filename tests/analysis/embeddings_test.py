"""Task embeddings of a HyperFormer: tables, similarities, a picture."""

import csv

import numpy as np
import pytest

from adapter_bert_tf.adapters.methods.hyperformer import embedding_name
from adapter_bert_tf.analysis.composition import embeddings
from adapter_bert_tf.cli.analyze import main
from adapter_bert_tf.store import load_adapter
from tests import support

GOLDEN = support.GOLDEN.parent / "several"


def rows(path):
    with path.open() as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("method", ["hyperformer", "hyperformer++"])
def test_tables_and_pictures(method, tmp_path, capsys):
    asked = ["embeddings", f"--adapter_dir={GOLDEN / method}", f"--output_dir={tmp_path}"]
    assert main(asked) == 0
    assert "pairs" in capsys.readouterr().out
    saved = load_adapter(str(GOLDEN / method)).weights
    found = rows(tmp_path / "task_embeddings.csv")
    assert [row[0] for row in found] == ["task", "pairs", "kinds", "scores"]
    expected = [saved[embedding_name(row[0])] for row in found[1:]]
    np.testing.assert_allclose([list(map(float, r[1:])) for r in found[1:]], expected, rtol=1e-5)
    alike = rows(tmp_path / "task_similarity.csv")
    a, b = expected[:2]
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert float(alike[1][2]) == pytest.approx(cosine, abs=1e-4) == float(alike[2][1])
    assert float(alike[1][1]) == 1
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 4 and main(asked) == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_components_by_hand():
    """Points on a line along (3, 4) have one component, their distances from the mean."""
    along = np.array([-5.0, 0.0, 10.0])
    points = along[:, None] * np.array([0.6, 0.8]) + 7
    found, shares = embeddings.principal_components(points)
    np.testing.assert_allclose(found[:, 0], along - along.mean(), atol=1e-9)
    np.testing.assert_allclose(found[:, 1], 0, atol=1e-9)
    np.testing.assert_allclose(shares, [1, 0], atol=1e-9)


def test_embeddings_of_one_number():
    found, _ = embeddings.principal_components(np.array([[1.0], [3.0]]))
    np.testing.assert_allclose(np.abs(found), [[1, 0], [1, 0]])
    np.testing.assert_allclose(
        embeddings.cosine_similarities(np.array([[2.0], [0.0]])), [[1, 0], [0, 0]]
    )


def test_both_axes_have_one_scale():
    """The second component of two tasks is a rounding error, which filled the axis."""
    (axes,) = embeddings.draw(["a", "b"], np.array([[1.0, 2.0], [4.0, 6.0]])).axes
    axes.apply_aspect()
    low, high = axes.get_ylim()
    assert low < -1 and high > 1


REFUSED = {
    "adapters": ("per_task_adapters", "is not a HyperFormer"),
    "an adapter of a task": ("hyperformer++/tasks/pairs", "is not a HyperFormer"),
    "nothing": ("nowhere", "nowhere"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_embeddings(case, tmp_path, capsys):
    name, said = REFUSED[case]
    out = tmp_path / "out"
    assert main(["embeddings", f"--adapter_dir={GOLDEN / name}", f"--output_dir={out}"]) == 1
    assert said in capsys.readouterr().err and not out.exists()
