"""Which kernels are chosen, for processors of several kinds."""

import subprocess
import sys

import pytest

from adapter_bert_tf.training.device.kernels import (
    VARIABLE,
    choose_kernels,
    kernels,
    kernels_line,
    multiplies_bfloat16,
)

AVX2, AVX512 = frozenset({"avx", "avx2", "fma"}), frozenset({"avx2", "fma", "avx512f"})
# Flags of the processor, the user's value, the value that TensorFlow reads, the kernels' name.
CASES = {
    "AVX2": (AVX2, None, "1", "oneDNN"),
    "AVX-512 without VNNI": (AVX512, None, "1", "oneDNN"),
    "TensorFlow chooses it": (AVX512 | {"avx512_vnni"}, None, None, "oneDNN"),
    "neither": (frozenset({"avx"}), None, None, "TensorFlow"),
    "another kind of processor": (frozenset(), None, None, "TensorFlow"),
    "the user's off": (AVX2, "0", "0", "TensorFlow"),
    "the user's false": (AVX512 | {"amx_tile"}, "False", "False", "TensorFlow"),
    "the user's on": (frozenset(), "1", "1", "oneDNN"),
}


@pytest.mark.parametrize("case", CASES)
def test_choice(case):
    flags, users, expected, name = CASES[case]
    environ = {} if users is None else {VARIABLE: users}
    choose_kernels(environ, flags)
    assert environ.get(VARIABLE) == expected
    is_usual = case in ("TensorFlow chooses it", "the user's false")
    assert bool(kernels_line(environ, flags)) == (name == "oneDNN" and not is_usual)
    assert kernels(environ, flags) == name


@pytest.mark.parametrize(
    ("flag", "environ", "expected"),
    [
        ("amx_bf16", {}, True),
        ("amx_bf16", {VARIABLE: "0"}, False),
        ("avx512_bf16", {}, False),  # A step took 552 instead of 402 ms.
    ],
)
def test_fast_products_of_bfloat16(flag, environ, expected):
    assert multiplies_bfloat16(environ, AVX512 | {flag}) is expected


def test_tensorflow_agrees():
    """With the name that is recorded for this processor."""
    from tensorflow.python.framework import test_util

    assert test_util.IsMklEnabled() == (kernels() == "oneDNN")


def test_commands_have_a_stack_for_signal_handlers():
    program = "import faulthandler, sys\nfrom adapter_bert_tf.cli.main import main\n"
    program += "main(['store', 'list', '.'])\nprint(faulthandler.is_enabled())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "True"
