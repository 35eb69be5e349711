"""A digest of the code that determines the result of training, recorded in each row."""

import ast
import hashlib
import json
import pathlib
from collections.abc import Sequence

# Pairs of digests of codes that train alike; `benchmarks.same_training` finds out.
ALIKE = pathlib.Path(__file__).resolve().parent / "results" / "training_code" / "alike.jsonl"
PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "adapter_bert_tf"
# Folders whose code decides results, and what is in them that does not.
DECIDING = ("adapters", "base", "data", "heads", "tasks", "training")
NOT_DECIDING = (
    "base/files.py",
    "data/checks.py",
    "data/tfds.py",
    "heads/serving_spans.py",
    "heads/serving_texts.py",
    "tasks/submission.py",
    "training/metrics_log.py",
    "training/progress.py",
    "training/parameter_report.py",
)
# What only several tasks, fusions and hypernetworks run: adapters of one task have none of it.
OF_SEVERAL = (
    "adapters/methods/fusion.py",
    "adapters/methods/fusion_config.py",
    "adapters/methods/hyperformer.py",
    "adapters/methods/hypernetwork.py",
    "adapters/methods/multitask.py",
    "adapters/methods/per_task.py",
    "adapters/methods/projected_attention.py",
    "data/mixture.py",
    "heads/mixed_classifier.py",
)


def digest(package: pathlib.Path = PACKAGE, of_several: bool = True) -> str:
    """Twelve digits of a SHA-256 of this code, without docstrings, comments and annotations.

    What only checks or says something counts too: that it decides nothing cannot be seen here.

    Args:
      package: folder of `adapter_bert_tf`.
      of_several: whether the code counts that only several tasks, fusions and hypernetworks run.
    """
    found = hashlib.sha256()
    left_out = NOT_DECIDING if of_several else (*NOT_DECIDING, *OF_SEVERAL)
    for path in sorted(path for folder in DECIDING for path in (package / folder).rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name not in left_out:
            found.update(f"{name}\n{_bare(path.read_text())}\n".encode())
    return found.hexdigest()[:12]


def alike(code: str | None) -> set[str | None]:
    """The digests of all codes that train to the same bytes, this one included."""
    pairs = [json.loads(line)["codes"] for line in _lines(ALIKE)]
    found: set[str | None] = {code}
    while more := [pair for pair in pairs if len(found & set(pair)) == 1]:
        found.update(*more)
    return found


def note_alike(codes: Sequence[str], shown_by: Sequence[str]) -> None:
    """Adds a line that two codes train alike.

    Args:
      codes: their digests.
      shown_by: names of the cases that ended with the same bytes.
    """
    if codes[0] != codes[1] and codes[1] not in alike(codes[0]):
        ALIKE.parent.mkdir(parents=True, exist_ok=True)
        with ALIKE.open("a") as lines:
            lines.write(json.dumps({"codes": list(codes), "shown_by": list(shown_by)}) + "\n")


def _lines(path: pathlib.Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _bare(source: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Bare().visit(ast.parse(source))))


class _Bare(ast.NodeTransformer):
    """Removes what has no effect."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """An argument without its annotation."""
        node.annotation = None
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A node without its docstring, if it can have one."""
        super().generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        body = getattr(node, "body", None)
        if isinstance(body, list) and isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                node.body = body[1:] or [ast.Pass()]
        return node
