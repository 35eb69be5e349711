"""A digest of the code that determines the result of training, recorded in each row."""

import ast
import hashlib
import json
import pathlib
from collections.abc import Sequence

# Pairs of digests of codes that train alike, from `benchmarks.same_training`.
EQUIVALENCES = pathlib.Path(__file__).resolve().parent / "results" / "training_code" / "alike.jsonl"
PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "adapter_bert_tf"
# Folders whose code determines results, and files in them that do not.
DIGESTED_FOLDERS = ("adapters", "base", "data", "heads", "tasks", "training")
EXCLUDED_FILES = (
    "base/files.py",
    "data/checks.py",
    "data/tfds.py",
    "heads/serving_class_rows.py",
    "heads/serving_spans.py",
    "heads/serving_tag_tables.py",
    "heads/serving_tags.py",
    "heads/serving_texts.py",
    "tasks/entity_errors.py",
    "tasks/submission.py",
    "training/progress.py",
    "training/parameter_report.py",
)
# Files that only several tasks, fusions and hypernetworks use.
MULTITASK_FILES = (
    "adapters/methods/fusion.py",
    "adapters/methods/fusion_config.py",
    "adapters/methods/hyperformer.py",
    "adapters/methods/multitask.py",
    "adapters/methods/per_task.py",
    "adapters/methods/projected_attention.py",
    "data/mixture.py",
    "heads/mixed/__init__.py",
    "heads/mixed/classifier.py",
    "heads/mixed/model.py",
    "heads/mixed/tagger.py",
)
# Beginnings of the files that only tagging uses.
TAGGING_FILES = ("data/tagging/", "heads/mixed/tagger", "heads/tag", "tasks/tag_")


def digest(
    package: pathlib.Path = PACKAGE, of_several: bool = True, of_tagging: bool = False
) -> str:
    """Twelve digits of a SHA-256 of this code, without docstrings, comments and annotations.

    What only checks or says something counts too: that it decides nothing cannot be seen here.

    Args:
      package: folder of `adapter_bert_tf`.
      of_several: whether the code counts that only several tasks, fusions and hypernetworks run.
      of_tagging: whether the code counts that only tagging runs.
    """
    sha256 = hashlib.sha256()
    excluded = EXCLUDED_FILES if of_several else (*EXCLUDED_FILES, *MULTITASK_FILES)
    for path in sorted(
        path for folder in DIGESTED_FOLDERS for path in (package / folder).rglob("*.py")
    ):
        name = path.relative_to(package).as_posix()
        if name not in excluded and (of_tagging or not name.startswith(TAGGING_FILES)):
            sha256.update(f"{name}\n{_normalize(path.read_text())}\n".encode())
    return sha256.hexdigest()[:12]


def equivalent_codes(code: str | None) -> set[str | None]:
    """The digests of all codes that train to the same bytes, this one included."""
    pairs = [json.loads(line)["codes"] for line in _lines(EQUIVALENCES)]
    codes: set[str | None] = {code}
    while more := [pair for pair in pairs if len(codes & set(pair)) == 1]:
        codes.update(*more)
    return codes


def record_equivalence(codes: Sequence[str], shown_by: Sequence[str]) -> None:
    """Records that two codes train alike.

    Args:
      codes: their digests.
      shown_by: names of the cases with identical results.
    """
    if codes[0] != codes[1] and codes[1] not in equivalent_codes(codes[0]):
        EQUIVALENCES.parent.mkdir(parents=True, exist_ok=True)
        with EQUIVALENCES.open("a") as lines:
            lines.write(json.dumps({"codes": list(codes), "shown_by": list(shown_by)}) + "\n")


def _lines(path: pathlib.Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _normalize(source: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Normalizer().visit(ast.parse(source))))


class _Normalizer(ast.NodeTransformer):
    """Removes annotations and docstrings."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Removes an argument's annotation."""
        node.annotation = None
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Removes a node's docstring and return annotation."""
        super().generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        body = getattr(node, "body", None)
        if isinstance(body, list) and isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                node.body = body[1:] or [ast.Pass()]
        return node
