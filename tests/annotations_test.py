"""What the type checker of `make lint` does not ask for: which annotations there must be."""

import ast
import pathlib

import adapter_bert_tf

PACKAGE = pathlib.Path(adapter_bert_tf.__file__).parent


def _dataclasses():
    """Yields (place, syntax tree) of all dataclasses of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and "dataclass" in " ".join(
                map(ast.unparse, node.decorator_list)
            ):
                yield f"{path.relative_to(PACKAGE)}: {node.name}", node


def _missing(function):
    """Names of a method's parameters without an annotation, but for the first; and `return`."""
    arguments = function.args
    others = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs][1:]
    missing = [argument.arg for argument in others if argument.annotation is None]
    return missing + (["return"] if function.returns is None else [])


def test_the_methods_of_dataclasses_are_annotated():
    found = dict(_dataclasses())
    assert len(found) > 40
    missing = {
        f"{place}.{method.name}": _missing(method)
        for place, node in found.items()
        for method in node.body
        if isinstance(method, ast.FunctionDef)
    }
    assert not {place: names for place, names in missing.items() if names}


def test_a_type_checker_sees_the_lazy_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: line.module for line in block.body for alias in line.names}
    assert seen == adapter_bert_tf._HOME


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
    assert '"py.typed"' in (PACKAGE.parent / "setup.py").read_text(encoding="utf-8")
