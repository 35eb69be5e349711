"""Imports go down the map of docs/design.md, never up."""

import ast
import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent / "adapter_bert_tf"
MAP = (PACKAGE.parent / "docs" / "design.md").read_text().split("adapter_bert_tf/\n")[1]
# From the top.
FLOORS = [
    name.rstrip("/,")
    for line in MAP.split("```")[0].splitlines()
    for name in re.match(r"\s+((?:\w+/?,? ?)+)", line)[1].split()
]
# `python -m` looks for a command in its folder; the command itself is in `cli/`.
COMMANDS = tuple(f"{room}/__main__.py" for room in ("analysis", "store", "serving", "predict"))
FILES = [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py"))]


def floor(path):
    return re.split(r"[/.]", path)[0]


def imported(path):
    """The floors that a file imports at run time; for annotations alone it may look anywhere."""
    tree = ast.parse((PACKAGE / path).read_text())
    only_types = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in only_types:
            names = [node.module]
            if node.module == "adapter_bert_tf":
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                if name.startswith("adapter_bert_tf."):
                    yield name.split(".")[1]


def test_the_map_names_every_room():
    rooms = {floor(path) for path in FILES if not path.startswith("__init__")}
    assert rooms == set(FLOORS)


@pytest.mark.parametrize("path", [path for path in FILES if path not in COMMANDS])
def test_imports_go_down(path):
    if path == "__init__.py":
        return  # The public API, above all.
    here = FLOORS.index(floor(path))
    up = [name for name in imported(path) if FLOORS.index(name) < here]
    assert not up, f"{path} imports {up}, which stand above it"
