"""What the doctor says of GPUs, on machines that are made up."""

import dataclasses

import pytest

from adapter_bert_tf.doctor.gpu_facts import Build, Driver, Gpu, GpuFacts, Library, Tool
from adapter_bert_tf.doctor.gpu_findings import gpu_findings

LIBRARIES = (
    Library("libcudart.so.12", version=(12, 9)),
    Library("libcublas.so.12"),
    Library("libcudnn.so.9", version=(9, 10, 2)),
)
A100 = Gpu("NVIDIA A100-SXM4-40GB", (8, 0), 40326, 39000)
T4 = Gpu("Tesla T4", (7, 5), 15102, 14000)
V100 = Gpu("Tesla V100-SXM2-16GB", (7, 0), 16144, 16000)
K80 = Gpu("Tesla K80", (3, 7), 11441, 11000)
RTX_5090 = Gpu("NVIDIA GeForce RTX 5090", (12, 0), 32100, 31000)


def machine(*gpus, cuda=(12, 4), **changes):
    """A machine on which all is well, with some changes."""
    facts = GpuFacts(
        has_card=True,
        driver=Driver(0, "550.54.15", cuda, gpus),
        libraries=LIBRARIES,
        ptxas=Tool("/site/nvidia/cuda_nvcc/bin/ptxas", (12, 9, 86)),
        libdevice="/site/nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
        used=sum((6, 0) <= gpu.capability < (10, 0) for gpu in gpus),
    )
    return dataclasses.replace(facts, **changes)


def without_driver(status=None, **changes):
    return machine(driver=Driver(status), libraries=(), ptxas=Tool(), libdevice="", **changes)


def with_library(name, **changes):
    return tuple(
        dataclasses.replace(one, **changes) if one.name == name else one for one in LIBRARIES
    )


NO_CUBLAS = with_library("libcublas.so.12", error="not found", others=("libcublas.so.13",))
NO_LINKER = with_library("libcublas.so.12", error="needs libnvJitLink.so.12, which is not found")
OLD_CUDNN = with_library("libcudnn.so.9", version=(9, 1, 0))
MODULE_CUDNN = with_library(
    "libcudnn.so.9", version=(9, 1, 0), path="/apps/cudnn/9.1/lib/libcudnn.so.9"
)
NEW_CUDNN = with_library("libcudnn.so.9", version=(9, 27, 0))

# Machine: the finding that needs something done, with words of its result and of the fix.
PROBLEMS = {
    "no driver": (without_driver(), "GPU", "without a driver", "525.60.13 docker run --gpus all"),
    "wsl without driver": (without_driver(is_wsl=True), "GPU", "in WSL", "527.41 Windows"),
    "no permission": (
        without_driver(100, denied=("/dev/nvidia0", "/dev/nvidiactl")),
        *("GPU", "/dev/nvidia0, /dev/nvidiactl", "ls -l /dev/nvidia0"),
    ),
    "no card for this process": (without_driver(100), "GPU", "cuInit: 100", "--gpus all"),
    "unknown number": (
        without_driver(100, visible="7"),
        *("GPU", "CUDA_VISIBLE_DEVICES=7", "nvidia-smi -L"),
    ),
    "stub": (without_driver(34), "GPU", "stub", "LD_LIBRARY_PATH"),
    "fabric": (without_driver(802), "GPU", "cuInit: 802", "nvidia-fabricmanager"),
    "driver updated": (without_driver(803), "GPU", "different versions", "Restart"),
    "forward compatibility": (without_driver(804), "GPU", "cuInit: 804", "cuda-compat"),
    "after a suspend": (without_driver(999), "GPU", "cuInit: 999", "nvidia_uvm"),
    "another failure": (without_driver(719), "GPU", "cuInit: 719", "nvidia-smi"),
    "divided": (
        machine(driver=Driver(100, divided=("NVIDIA A100-SXM4-40GB",))),
        *("GPU", "NVIDIA A100-SXM4-40GB MIG", "CUDA_VISIBLE_DEVICES=MIG- nvidia-smi -L"),
    ),
    "built without CUDA": (
        machine(A100, build=Build(has_cuda=False)),
        *("TensorFlow", "without CUDA", "tensorflow[and-cuda]==2.20.*"),
    ),
    "Windows": (
        machine(A100, build=Build(has_cuda=False), system="Windows"),
        *("TensorFlow", "without CUDA", "WSL2"),
    ),
    "old driver": (machine(A100, cuda=(11, 4)), "driver", "11.4", "CUDA 12 525.60.13"),
    "old driver of Windows": (
        machine(A100, cuda=(11, 4), is_wsl=True),
        *("driver", "11.4", "527.41 Windows"),
    ),
    "old card": (machine(K80), "GPU", "Tesla K80 3.7", "6.0"),
    "new card": (machine(RTX_5090), "GPU", "12.0", "9.0 #89272"),
    "full card": (
        machine(dataclasses.replace(A100, free_mb=300)),
        *("GPU", "300 MB", "nvidia-smi"),
    ),
    "CUDA 13 alone": (
        machine(A100, libraries=NO_CUBLAS, used=0),
        *("CUDA's libraries", "libcublas.so.12 not found libcublas.so.13", "[and-cuda]"),
    ),
    "a library lacks another": (
        machine(A100, libraries=NO_LINKER, used=0),
        *("CUDA's libraries", "libcublas.so.12 libnvJitLink.so.12", "[and-cuda]"),
    ),
    "cuDNN of PyTorch": (machine(T4, libraries=OLD_CUDNN), "cuDNN", "9.1.0", "nvidia-cudnn-cu12"),
    "cuDNN of a cluster's module": (
        machine(T4, libraries=MODULE_CUDNN),
        *("cuDNN", "9.1.0", "/apps/cudnn/9.1/lib LD_LIBRARY_PATH"),
    ),
    "cuDNN without old cards": (
        machine(V100, libraries=NEW_CUDNN),
        *("cuDNN", "9.27.0", "Tesla V100-SXM2-16GB nvidia-cudnn-cu12==9.10.*"),
    ),
    "no ptxas": (machine(T4, ptxas=Tool()), "XLA", "ptxas", "--nojit_compile and-cuda"),
    "no libdevice": (machine(T4, libdevice=""), "XLA", "libdevice.10.bc", "xla_gpu_cuda_data_dir"),
    "ptxas without old cards": (
        machine(V100, ptxas=Tool("/usr/local/cuda/bin/ptxas", (13, 0, 88))),
        *("XLA", "13.0.88", "Tesla V100-SXM2-16GB xla_gpu_cuda_data_dir"),
    ),
    "left out": (machine(A100, A100, used=1), "GPUs in use", "1 of 2", "TF_CPP_MAX_VLOG_LEVEL"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_problem_has_one_fix(name):
    facts, finding, result, fix = PROBLEMS[name]
    found = [one for one in gpu_findings(facts) if one.fix]
    assert [one.name for one in found] == [finding]
    assert all(word in found[0].result for word in result.split()), found[0].result
    assert all(word in found[0].fix for word in fix.split()), found[0].fix
    assert not found[0].needed  # Commands run on the CPU.


@pytest.mark.parametrize(
    "facts,names",
    [
        (GpuFacts(), ["GPU"]),
        (GpuFacts(is_wsl=True), ["GPU"]),
        (machine(A100, visible="-1"), ["GPU"]),
        (machine(A100, visible=""), ["GPU"]),
        (machine(T4), ["GPU", "driver", "precision", "CUDA", "cuDNN", "XLA"]),
        (machine(A100, T4), ["GPU", "GPU", "driver", "precision", "CUDA", "cuDNN", "XLA"]),
        # Turing has code in every cuDNN 9; a hidden card is none.
        (machine(T4, libraries=NEW_CUDNN), ["GPU", "driver", "precision", "CUDA", "cuDNN", "XLA"]),
        (machine(V100, visible="0"), ["GPU", "driver", "precision", "CUDA", "cuDNN", "XLA"]),
    ],
)
def test_nothing_to_fix(facts, names):
    found = list(gpu_findings(facts))
    assert [one.name for one in found] == names
    assert not any(one.fix for one in found), found


@pytest.mark.parametrize(
    "facts,words",
    [
        (machine(A100, libraries=NO_CUBLAS, used=0), "0 of 1; commands run on the CPU"),
        (machine(K80), "0 of 1; commands run on the CPU"),
        (machine(A100, K80), "1 of 2"),
        (machine(RTX_5090), "0 of 1; commands run on the CPU"),
    ],
)
def test_says_that_a_card_is_not_used(facts, words):
    assert [one.result for one in gpu_findings(facts) if one.name == "GPUs in use"] == [words]


def test_names_what_there_is():
    words = {one.name: one.result for one in gpu_findings(machine(T4, precision="float16"))}
    assert words == {
        "GPU": "Tesla T4, compute capability 7.5, 15,102 MB, 14,000 MB of it free",
        "driver": "550.54.15, for CUDA up to 12.4",
        "precision": "float16 (chosen by --precision=auto)",
        "CUDA": "12.9 (TensorFlow was built with 12.5.1)",
        "cuDNN": "9.10.2 (TensorFlow was built with 9)",
        "XLA": "ptxas 12.9.86, libdevice.10.bc",
    }
