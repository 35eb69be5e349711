"""What the facts on a machine's GPUs mean, in words, with what to do."""

import os
from collections.abc import Iterator

from adapter_bert_tf.doctor.finding import Finding
from adapter_bert_tf.doctor.gpu_facts import Build, Driver, Gpu, GpuFacts, Library, format_version

INSTALL = 'pip install "tensorflow[and-cuda]==2.20.*"'
# NVIDIA, "CUDA Compatibility": what CUDA 12 needs at least, on Linux and on Windows.
LOWEST_DRIVER = "525.60.13"
LOWEST_WINDOWS_DRIVER = "527.41"
LOWEST_CUDNN = (9, 3)  # TensorFlow 2.20 was compiled with 9.3 and refuses older ones.
TURING = (7, 5)
# Without code for Maxwell, Pascal and Volta (conda-forge/cudnn-feedstock#124; CUDA 13's notes).
OLD_CARDS_CUDNN, OLD_CARDS_PTXAS = (9, 11), (13,)
LOW_MEMORY = 2048  # MB. Less is not enough for a training step of BERT-base.

# The result of `cuInit`, from cuda.h: what it means, and what to do.
STATUS = {
    34: (
        "libcuda.so.1 is the stub of CUDA's toolkit",
        "Remove the folder `stubs` from LD_LIBRARY_PATH.",
    ),
    46: (
        "the card is in exclusive mode, and another process uses it",
        "End that process, or: sudo nvidia-smi -c DEFAULT",
    ),
    100: (
        "the driver shows no card to this process",
        "In a container: docker run --gpus all. In a cluster's job: ask for a GPU.",
    ),
    802: (
        "the cards are not ready (NVSwitch is not running)",
        "sudo systemctl start nvidia-fabricmanager",
    ),
    803: (
        "libcuda.so.1 and the kernel's module are of different versions, as after an update",
        "Restart the machine. In a container, leave out the driver's own libraries.",
    ),
    804: (
        "libcuda.so.1 is newer than the kernel's module, which this card does not allow",
        "Restart the machine after an update of the driver, or remove the package cuda-compat.",
    ),
    999: (
        "the driver failed, as after a suspend, or without the module nvidia_uvm",
        "sudo modprobe --remove nvidia_uvm; sudo modprobe nvidia_uvm. Otherwise restart.",
    ),
}


def gpu_findings(facts: GpuFacts) -> Iterator[Finding]:
    """Yields what the machine has for TensorFlow to run on a GPU, and what is missing."""
    if facts.is_hidden and facts.has_card:
        yield Finding("GPU", f"none (hidden by CUDA_VISIBLE_DEVICES={facts.visible})")
    elif facts.driver.gpus:
        for gpu in facts.driver.gpus:
            yield _card(gpu, facts)
        yield _driver(facts.driver, facts.is_wsl)
        if facts.build.has_cuda:
            yield Finding("precision", f"{facts.precision} (chosen by --precision=auto)")
            yield from _libraries(facts)
            yield _compiler(facts)
            yield from _unused(facts)
        else:
            yield _without_cuda(facts)
    elif facts.has_card:
        yield _unreachable(facts)
    elif facts.is_wsl:
        yield Finding("GPU", "none (NVIDIA's driver for WSL comes with its driver for Windows)")
    else:
        yield Finding("GPU", "none")


def _lacks_code(gpu: Gpu, build: Build) -> bool:
    return gpu.capability < build.lowest or gpu.capability[0] > build.highest[0]


def _card(gpu: Gpu, facts: GpuFacts) -> Finding:
    free = "" if gpu.free_mb is None else f", {gpu.free_mb:,} MB of it free"
    capability = format_version(gpu.capability)
    result = f"{gpu.name}, compute capability {capability}, {gpu.memory_mb:,} MB{free}"
    build, fix = facts.build, ""
    if gpu.capability < build.lowest:
        fix = (
            f"TensorFlow ignores this card: it needs compute capability "
            f"{format_version(build.lowest)}."
        )
    elif gpu.capability[0] > build.highest[0]:
        fix = (
            f"Commands do not use this card: this TensorFlow has code up to compute capability "
            f"{format_version(build.highest)}. Users of later cards (Blackwell) report "
            "CUDA_ERROR_INVALID_PTX or CUDA_ERROR_INVALID_HANDLE in every operation, and that XLA "
            "ends the process (tensorflow#89272)."
        )
    elif gpu.free_mb is not None and gpu.free_mb < LOW_MEMORY:
        fix = "Other processes use its memory; nvidia-smi lists them."
    return Finding("GPU", result, fix)


def _driver(driver: Driver, is_wsl: bool) -> Finding:
    cuda = format_version(driver.cuda)
    result = f"{driver.version or 'unknown version'}, for CUDA up to {cuda}"
    fix = ""
    if driver.cuda < (12,):
        fix = f"TensorFlow 2.20 uses CUDA 12. Install driver {LOWEST_DRIVER} or later."
        if is_wsl:
            fix = f"TensorFlow 2.20 uses CUDA 12. {_windows_driver(LOWEST_WINDOWS_DRIVER)}"
    return Finding("driver", result, fix)


def _windows_driver(version: str) -> str:
    return f"Install NVIDIA's driver {version} or later in Windows, and none in Linux."


def _libraries(facts: GpuFacts) -> Iterator[Finding]:
    """Yields the versions of CUDA and cuDNN, and the libraries that cannot be opened."""
    for name, built, library in (
        ("CUDA", facts.build.cuda, _named(facts.libraries, "libcudart")),
        ("cuDNN", facts.build.cudnn, _named(facts.libraries, "libcudnn")),
    ):
        found = "not found" if library.error else format_version(library.version) or "found"
        fix = _cudnn_fix(library, facts.driver.gpus) if name == "cuDNN" else ""
        yield Finding(name, f"{found} (TensorFlow was built with {built})", fix)
    if failed := [_failure(library) for library in facts.libraries if library.error]:
        yield Finding("CUDA's libraries", ", ".join(failed), INSTALL)


def _failure(library: Library) -> str:
    there = f" (but {', '.join(library.others)})" if library.others else ""
    return f"{library.name} {library.error}{there}"


def _named(libraries: tuple[Library, ...], name: str) -> Library:
    missing = Library(name, error="not found")
    return next((one for one in libraries if one.name.startswith(f"{name}.so")), missing)


def _cudnn_fix(cudnn: Library, gpus: tuple[Gpu, ...]) -> str:
    if cudnn.version and cudnn.version < LOWEST_CUDNN:
        fix = 'pip install "nvidia-cudnn-cu12>=9.3,<10"'
        if "/" in cudnn.path and "/nvidia/cudnn/" not in cudnn.path:
            fix = f"remove {os.path.dirname(cudnn.path)} from LD_LIBRARY_PATH"
        return f"TensorFlow refuses cuDNN before 9.3: {fix}"
    old = [gpu.name for gpu in gpus if gpu.capability < TURING]
    if old and cudnn.version >= OLD_CARDS_CUDNN:
        return (
            f"cuDNN has no code for {old[0]} from 9.11 on, and may end the process: "
            'pip install "nvidia-cudnn-cu12==9.10.*"'
        )
    return ""


def _compiler(facts: GpuFacts) -> Finding:
    """Returns whether XLA finds what it needs to compile for the cards."""
    found = {
        f"ptxas {format_version(facts.ptxas.version)}": bool(facts.ptxas.path),
        "libdevice.10.bc": bool(facts.libdevice),
    }
    missing = [name.split()[0] for name, is_there in found.items() if not is_there]
    if missing:
        return Finding(
            "XLA",
            f"{' and '.join(missing)} not found; compiled steps fail",
            f"{INSTALL}, or name the folder of CUDA's toolkit: "
            "XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda. Until then: --nojit_compile",
        )
    old = [gpu.name for gpu in facts.driver.gpus if gpu.capability < TURING]
    fix = ""
    if old and facts.ptxas.version >= OLD_CARDS_PTXAS:
        fix = (
            f"ptxas does not know {old[0]} from 13 on. Name the folder of CUDA 12's: "
            "XLA_FLAGS=--xla_gpu_cuda_data_dir=FOLDER"
        )
    return Finding("XLA", ", ".join(found), fix)


def _unused(facts: GpuFacts) -> Iterator[Finding]:
    """Yields a finding if TensorFlow leaves out a card; with a fix if no other finding has one."""
    gpus = facts.driver.gpus
    if facts.used >= len(gpus):
        return
    is_known = (
        any(library.error for library in facts.libraries)
        or facts.driver.cuda < (12,)
        or any(_lacks_code(gpu, facts.build) for gpu in gpus)
    )
    fix = (
        "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_MAX_VLOG_LEVEL=1 python -c 'import tensorflow as tf; "
        'tf.config.list_physical_devices("GPU")\' prints why. A card with fewer than 8 '
        "multiprocessors next to a larger one: TF_MIN_GPU_MULTIPROCESSOR_COUNT=1"
    )
    where = "" if facts.used else "; commands run on the CPU"
    yield Finding("GPUs in use", f"{facts.used} of {len(gpus)}{where}", "" if is_known else fix)


def _unreachable(facts: GpuFacts) -> Finding:
    """The finding for a card that the driver does not show."""
    if facts.denied:
        return Finding(
            "GPU",
            f"this user may not open {', '.join(facts.denied)}",
            f"Join the group of these files (ls -l {facts.denied[0]}), and log in again.",
        )
    if not facts.build.has_cuda:
        return _without_cuda(facts)
    if facts.driver.divided:
        return Finding(
            "GPU",
            f"{', '.join(facts.driver.divided)}: divided (MIG), and no instance is visible",
            "Name one in CUDA_VISIBLE_DEVICES=MIG-..., from nvidia-smi -L. Without instances: "
            "sudo nvidia-smi mig -cgi PROFILE -C",
        )
    if facts.driver.status is None and facts.is_wsl:
        fix = f"{_windows_driver(LOWEST_WINDOWS_DRIVER)} LD_LIBRARY_PATH=/usr/lib/wsl/lib"
        return Finding("GPU", "libcuda.so.1 is not found in WSL", fix)
    if facts.driver.status is None:
        return Finding(
            "GPU",
            "an NVIDIA card without a driver (libcuda.so.1 is not found)",
            f"Install NVIDIA's driver, {LOWEST_DRIVER} or later. In a container: docker run "
            "--gpus all",
        )
    status = facts.driver.status
    if facts.visible is not None and status in (100, 101):
        return Finding(
            "GPU",
            f"CUDA_VISIBLE_DEVICES={facts.visible} names no card of this machine",
            "Take numbers or UUIDs from: nvidia-smi -L",
        )
    meaning, fix = STATUS.get(status, ("the driver failed", "Does nvidia-smi work?"))
    return Finding("GPU", f"{meaning} (cuInit: {status})", fix)


def _without_cuda(facts: GpuFacts) -> Finding:
    fix = {
        "Windows": "On Windows, TensorFlow uses GPUs only in WSL2.",
        "Darwin": "Commands run on the CPU.",
    }.get(facts.system, f"On Linux on x86-64: {INSTALL}")
    return Finding("TensorFlow", "built without CUDA", fix)
