"""How the doctor finds cards, drivers, libraries and programs, with substitutes for NVIDIA's."""

import os

import pytest
import tensorflow as tf

from adapter_bert_tf.doctor import cuda_driver, cuda_libraries, gpu_probe
from adapter_bert_tf.doctor.gpu_facts import Build, Driver, Gpu, GpuFacts, Library
from tests.programs import program

CARD = {"sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n"}
DISPLAY = {"sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n"}
BRIDGE = {"sys/bus/pci/devices/0000:01:00.0/class": "0x068000\n"}
WSL = {"proc/version": "Linux version 5.15.167.4-microsoft-standard-WSL2"}


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    "files,has_card,is_wsl",
    [
        ({}, False, False),
        ({**CARD, **DISPLAY}, True, False),
        ({**CARD, **BRIDGE}, False, False),
        ({"dev/nvidia0": ""}, True, False),
        ({"dev/nvidia-caps": ""}, False, False),
        (WSL, False, True),
        ({**WSL, "usr/lib/wsl/lib/libcuda.so.1": ""}, True, True),
    ],
)
def test_cards_are_files_of_the_system(tmp_path, files, has_card, is_wsl):
    facts = gpu_probe.look_for_card(write(tmp_path, files))
    assert (facts.has_card, facts.is_wsl, facts.denied) == (has_card, is_wsl, ())


def test_device_files_that_may_not_be_opened(tmp_path, monkeypatch):
    root = write(tmp_path, {"dev/nvidia0": "", "dev/nvidiactl": ""})
    monkeypatch.setattr(os, "access", lambda path, mode: path.endswith("ctl"))
    assert gpu_probe.look_for_card(root).denied == (f"{root}/dev/nvidia0",)


@pytest.mark.parametrize("files,visible", [({}, None), ({"dev/nvidia0": ""}, "-1")])
def test_without_a_card_to_use_nothing_is_opened(files, visible, tmp_path, monkeypatch):
    def fail():
        raise AssertionError

    monkeypatch.setattr(gpu_probe, "read_driver", fail)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    facts = gpu_probe.read_facts(write(tmp_path, files))
    assert facts == GpuFacts(has_card=bool(files), visible=visible)


class Cuda:
    """`libcuda.so.1` with one device; arguments are as ctypes passes them."""

    def __init__(self, status=0):
        self._status = status

    def cuInit(self, flags):
        return self._status

    def cuDriverGetVersion(self, value):
        value._obj.value = 12040

    def cuDeviceGetCount(self, value):
        value._obj.value = 1

    def cuDeviceGet(self, value, index):
        value._obj.value = index + 7

    def cuDeviceGetName(self, text, length, device):
        assert device == 7
        text.value = b"Tesla T4"

    def cuDeviceGetPCIBusId(self, text, length, device):
        text.value = b"0000:3B:00.0"

    def cuDeviceTotalMem_v2(self, value, device):
        value._obj.value = 15102 << 20

    def cuDeviceGetAttribute(self, value, number, device):
        value._obj.value = {75: 7, 76: 5}[number]


SMI = "00000000:3B:00.0, 550.54.15, 14000, [N/A], Tesla T4"
DIVIDED = "00000000:00:04.0, 550.54.15, 40000, Enabled, NVIDIA A100-SXM4-40GB"


@pytest.mark.parametrize(
    "status,smi,expected",
    [
        (0, SMI, Driver(0, "550.54.15", (12, 4), (Gpu("Tesla T4", (7, 5), 15102, 14000),))),
        (0, None, Driver(0, "", (12, 4), (Gpu("Tesla T4", (7, 5), 15102),))),
        (0, "No devices were found", Driver(0, "", (12, 4), (Gpu("Tesla T4", (7, 5), 15102),))),
        (100, DIVIDED, Driver(100, "550.54.15", (12, 4), (), ("NVIDIA A100-SXM4-40GB",))),
    ],
)
def test_the_driver_is_asked_without_tensorflow(tmp_path, monkeypatch, status, smi, expected):
    program(tmp_path / "bin", "nvidia-smi", smi, monkeypatch)
    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", lambda name: Cuda(status))
    assert cuda_driver.read_driver() == expected


def test_no_driver(tmp_path, monkeypatch):
    program(tmp_path / "bin", "nvidia-smi", None, monkeypatch)
    assert cuda_driver.read_driver() == Driver()


class CudaLibraries:
    """Opens the libraries that are files below a folder; cuDNN is 9.19.0."""

    def __init__(self, path):
        if not os.path.exists(path) or "cusolver" in path:
            missing = "libnvJitLink.so.12" if "cusolver" in path else path
            raise OSError(f"{missing}: cannot open shared object file: No such file or directory")

    def cudaRuntimeGetVersion(self, value):
        value._obj.value = 12090

    class cudnnGetVersion:
        def __new__(cls):
            return 91900


def test_libraries_are_looked_for_as_the_loader_does(tmp_path, monkeypatch):
    packages = {
        f"nvidia/{folder}/lib/{name}": "" for name, folder in cuda_libraries.LIBRARIES.items()
    }
    del packages["nvidia/cublas/lib/libcublas.so.12"]
    write(tmp_path, packages)
    write(tmp_path / "modules", {"libcudnn.so.9": "", "libcublas.so.13.1": ""})
    monkeypatch.setattr(cuda_libraries, "pip_folder", lambda: str(tmp_path / "nvidia"))
    monkeypatch.setattr(cuda_libraries.ctypes, "CDLL", CudaLibraries)
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path}/modules")
    found = {one.name: one for one in cuda_libraries.read_libraries()}
    place = f"{tmp_path}/nvidia/cuda_runtime/lib/libcudart.so.12"
    assert found["libcudart.so.12"] == Library("libcudart.so.12", place, version=(12, 9))
    # LD_LIBRARY_PATH comes before the packages.
    cudnn = Library("libcudnn.so.9", f"{tmp_path}/modules/libcudnn.so.9", version=(9, 19, 0))
    assert found["libcudnn.so.9"] == cudnn
    assert found["libcublas.so.12"].error == "not found"
    assert found["libcublas.so.12"].others == ("libcublas.so.13",)
    assert found["libcusolver.so.11"].error == "needs libnvJitLink.so.12, which is not found"


def test_the_build_of_tensorflow():
    assert gpu_probe.read_build({"is_cuda_build": False}) == Build(has_cuda=False)
    assert gpu_probe.read_build(tf.sysconfig.get_build_info()) == Build()
