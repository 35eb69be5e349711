"""Which kernels compute on this processor; decided before TensorFlow is imported."""

import os
import pathlib
import platform
from collections.abc import Mapping, MutableMapping

VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
# With one of these TensorFlow 2.20 uses oneDNN by itself (util/port.cc, `DefaultOneDnnPolicy`).
USUAL = {"avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"}
NEEDED = {"avx2", "fma"}
# oneDNN multiplies bfloat16 faster than float32 with these; with `avx512_bf16` not everywhere.
FAST_BFLOAT16 = "amx_bf16"
ONEDNN, OWN = "oneDNN", "TensorFlow"
OFF, ON = ("0", "false"), ("1", "true")


def choose_kernels(
    environ: MutableMapping[str, str] = os.environ, flags: frozenset[str] | None = None
) -> None:
    """Chooses oneDNN on processors with AVX2, unless the user has chosen.

    On one without AVX-512, a step of MiniLM takes three quarters of the time of TensorFlow's own
    kernels.

    Args:
      environ: environment variables to change.
      flags: of the processor; None for this one.
    """
    flags = processor_flags() if flags is None else flags
    if VARIABLE not in environ and flags >= NEEDED and not flags & USUAL:
        environ[VARIABLE] = "1"


def kernels(environ: Mapping[str, str] = os.environ, flags: frozenset[str] | None = None) -> str:
    """The name of the kernels: `oneDNN`, or `TensorFlow` for its own."""
    flags = processor_flags() if flags is None else flags
    value = environ.get(VARIABLE, "").lower()
    if value in (*OFF, *ON):
        return ONEDNN if value in ON else OWN
    return ONEDNN if flags & USUAL else OWN


def multiplies_bfloat16(
    environ: Mapping[str, str] = os.environ, flags: frozenset[str] | None = None
) -> bool:
    """Whether products of bfloat16 are faster than those of float32 on this processor."""
    flags = processor_flags() if flags is None else flags
    return FAST_BFLOAT16 in flags and kernels(environ, flags) == ONEDNN


def kernels_line(
    environ: Mapping[str, str] = os.environ, flags: frozenset[str] | None = None
) -> str:
    """What to print of the kernels; empty where they are those that TensorFlow would choose."""
    flags = processor_flags() if flags is None else flags
    if flags & USUAL or kernels(environ, flags) == OWN:
        return ""
    return f"Kernels: oneDNN, by {VARIABLE}=1 (0: TensorFlow's own)."


def processor_flags() -> frozenset[str]:
    """The instruction sets of this processor, as Linux names them; empty elsewhere."""
    path = pathlib.Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not path.exists():
        return frozenset()
    lines = path.read_text().splitlines()
    line = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())
