"""Below `run/` messages name arguments of Python functions; the commands turn them into flags."""

import ast
import pathlib
import re

import pytest

import adapter_bert_tf
from adapter_bert_tf import errors
from adapter_bert_tf.cli import score
from adapter_bert_tf.config import settings
from adapter_bert_tf.config.messages import FLAGS, RENAMED, spell_for_command, spell_for_python
from adapter_bert_tf.errors import Diverged, InputError, WorkerLost

PACKAGE = pathlib.Path(adapter_bert_tf.__file__).parent
ABOVE = (
    *("analysis", "cli", "config", "jobs", "output", "report", "run", "runners", "sweeps"),
    *("task_types", "doctor"),  # Only commands read tables of labels.
)
FLAG = re.compile(r"(?<![\w-])--[a-z]\w*")
# Flags that are named below `run/`, by file, and why.
NAMED = {
    # pip's own.
    "base/files.py": {"--no"},
    "base/hub.py": {"--no"},
    "base/loading.py": {"--no"},
    # XLA's and ptxas' own.
    "training/device/precision.py": {"--xla_gpu_deterministic_ops"},
    "training/device/xla_tools.py": {"--xla_gpu_cuda_data_dir", "--version"},
    # The command line on a card.
    "store/card.py": {
        "--task_name",
        "--tuning",
        "--do_eval",
        "--do_predict",
        "--adapter_dir",
        "--stack",
    },
    # The command that exports one adapter, said by that which exports several.
    "serving/joined.py": {"--adapter_dir", "--do_export"},
    # Of nvidia-smi.
    "training/device/devices.py": {"--query", "--format"},
    # Which command writes the file that is missing.
    "tasks/submission.py": {"--task_name", "--do_predict", "--output"},
}


# Of commands that are no jobs.
OTHERS = {"skip_bad_rows", *vars(score.parse(["--adapter_dir=a", "--input=b", "--output=c"])[0])}


def _library():
    """Yields (path, syntax tree) of the files below `run/`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] not in ABOVE:
            yield place.as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def _is_command(tree):
    return any(isinstance(node, ast.If) and "__main__" in ast.unparse(node) for node in tree.body)


def _literals(tree):
    """The strings in a module; of a command without its docstring, which shows how to call it."""
    usage = tree.body[0].value if _is_command(tree) else None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node is not usage:
            yield node.value


def test_the_library_names_no_flags():
    found = {
        place: {flag for text in _literals(tree) for flag in FLAG.findall(text)}
        for place, tree in _library()
    }
    assert {place: flags for place, flags in found.items() if flags} == NAMED


KINDS = {kind.__name__ for kind in vars(errors).values() if hasattr(kind, "code")}


def _errors(tree):
    """Yields (texts, arguments) of each error that names arguments; the message is first."""
    for node in ast.walk(tree):
        name = node.func.id if isinstance(node, ast.Call) and hasattr(node.func, "id") else ""
        if name in KINDS and len(node.args) > 1:
            message, *arguments = map(_text, (_assigned(tree, node), *node.args[1:]))
            yield [message, *_literals(tree)], [argument for argument in arguments if argument]


def _assigned(tree, call):
    """The message of a call, or what was assigned last to the name that it has."""
    message = call.args[0]
    if not isinstance(message, ast.Name):
        return message
    values = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign)
        and getattr(getattr(node, "target", None) or node.targets[0], "id", "") == message.id
        and node.lineno < call.lineno
    ]
    return max(values, key=lambda node: node.lineno).value if values else message


def _text(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return _text(node.left) + _text(node.right) if isinstance(node, ast.BinOp) else ""


def test_every_argument_that_a_message_names_is_in_it_and_has_a_flag():
    named = [error for _, tree in _library() for error in _errors(tree)]
    assert len(named) > 15
    for texts, arguments in named:
        for argument in arguments:
            message = next((text for text in texts if argument in text), None)
            assert message is not None, argument
            said = spell_for_command(InputError(message, argument), FLAGS | OTHERS)
            assert FLAG.search(said), said


def test_flags_of_another_name_are_in_the_table():
    assert set(RENAMED.values()) <= {row.name for row in settings.SETTINGS}
    assert not set(RENAMED) & {row.name for row in settings.SETTINGS}


@pytest.mark.parametrize(
    ("message", "arguments", "said"),
    [
        ("top_k must be 1 to 2", ["top_k"], "--top_k must be 1 to 2"),
        ("Lower learning_rate=0.1. Now.", ["learning_rate=0.1"], "Lower --learning_rate=0.1. Now."),
        ("with train_layer_norm=False", ["train_layer_norm=False"], "with --notrain_layer_norm"),
        ("Use export=True.", ["export=True"], "Use --do_export."),
        ("tuning='full' it is", ["tuning='full'"], "--tuning=full it is"),
        ("(adapter_dir)", ["adapter_dir"], "(--adapter_dir)"),
        (
            "on weights (checkpoint=PATH)",
            ["checkpoint=PATH"],
            "on weights (--init_checkpoint=PATH)",
        ),
        ("config_path: no", ["config_path"], "--bert_config_file: no"),
        (
            "encoding of encoding.txt, 'encoding', /encoding/a, a/encoding, new-encoding",
            ["encoding"],
            "--encoding of encoding.txt, 'encoding', /encoding/a, a/encoding, new-encoding",
        ),
        ("top_k, top_k=3, top_k", ["top_k", "top_k=3"], "--top_k, --top_k=3, --top_k"),
        ("top_kk and my_top_k", ["top_k"], "top_kk and my_top_k"),
        ("depth must be 1", ["depth"], "depth must be 1"),
        ("top_k must be 1", [], "top_k must be 1"),
    ],
)
def test_arguments_become_flags(message, arguments, said):
    for kind in (InputError, Diverged):
        error = kind(message, *arguments)
        assert spell_for_command(error) == said
        assert (str(error), error.arguments) == (message, tuple(arguments))


def test_other_errors_are_as_they_are():
    assert spell_for_command(WorkerLost("top_k is lost")) == "top_k is lost"


def test_a_command_is_told_of_its_own_flags_only():
    error = InputError("Use base_model or adapter_dir", "base_model", "adapter_dir")
    assert spell_for_command(error, ["base_model"]) == "Use --base_model or adapter_dir"
    error = InputError("Use another (adapter_dir), or train (top_k=2).", "adapter_dir", "top_k=2")
    assert spell_for_command(error, ["base_model"]) == "Use another, or train."
    assert spell_for_command(error, ["top_k"]) == "Use another, or train (--top_k=2)."


def test_python_is_told_of_arguments():
    said = "--keep=best, --nodo_eval, --top_k: not --this-one, a--tail, nor --unknown"
    expected = "keep=best, do_eval=False, top_k: not --this-one, a--tail, nor --unknown"
    assert spell_for_python(said) == expected
