"""GPU memory, and cards that TensorFlow does not see: made-up devices in TensorFlow's context."""

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.training.device import devices
from tests.refusals import raises_code


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs in a context that has not used its devices; its GPU options decide the memory."""
    own = context.Context()
    cpu, *made_up = (
        context.PhysicalDevice(f"/physical_device:{name}", name.split(":")[0])
        for name in ("CPU:0", "GPU:0", "GPU:1")
    )
    own._physical_devices = own._visible_device_list = [cpu, *made_up]
    own._pluggable_devices = []
    own._memory_growth_map = dict.fromkeys(made_up)
    monkeypatch.setattr(context, "_context", own)
    set_capability(monkeypatch, (8, 0), (8, 0))
    return made_up


def set_capability(monkeypatch, *capabilities):
    """The compute capability of each GPU, None where TensorFlow does not know it."""

    def details(gpu):
        return {"device_name": "NVIDIA", "compute_capability": capabilities[int(gpu.name[-1])]}

    monkeypatch.setattr(tf.config.experimental, "get_device_details", details)


def grows():
    return context.context()._compute_gpu_options().allow_growth


def limits():
    options = context.context()._compute_gpu_options().experimental
    return [list(one.memory_limit_mb) for one in options.virtual_devices]


def device_config(**values):
    return RunConfig.from_values(Command.CLASSIFIER, values).device


@pytest.mark.parametrize(
    ("capabilities", "used"),
    [
        (((7, 0), (9, 0)), [0, 1]),
        (((12, 0), (8, 6)), [1]),
        (((10, 0), (12, 0)), []),
        ((None, None), [0, 1]),
        (((9, 5), None), [0, 1]),
    ],
)
def test_cards_without_code_are_hidden(capabilities, used, gpus, monkeypatch, caplog):
    set_capability(monkeypatch, *capabilities)
    devices.configure_devices(device_config())
    assert tf.config.get_visible_devices("GPU") == [gpus[index] for index in used]
    warned = [one.getMessage() for one in caplog.records if "is not used" in one.getMessage()]
    assert len(warned) == 2 - len(used)
    assert not warned or ("on the CPU" in warned[-1]) == (not used)
    devices.configure_devices(device_config())
    again = [one.getMessage() for one in caplog.records if "is not used" in one.getMessage()]
    assert again == warned


def test_a_tensorflow_for_later_cards_uses_them(gpus, monkeypatch):
    set_capability(monkeypatch, (12, 0), (12, 0))
    info = {"cuda_compute_capabilities": ["sm_80", "sm_90a", "compute_120"]}
    monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: info)
    devices.hide_unsupported_cards()
    assert tf.config.get_visible_devices("GPU") == gpus


@pytest.mark.parametrize(
    ("names", "lowest", "highest"),
    [
        (["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"], (6, 0), (9, 0)),
        (["compute_120", "sm_75"], (7, 5), (12, 0)),
        (["sm_100f"], (10, 0), (10, 0)),
    ],
)
def test_the_range_of_tensorflows_code(names, lowest, highest):
    assert devices.code_range(names) == (lowest, highest)


def test_memory_grows(gpus):
    devices.configure_devices(device_config())
    devices.configure_devices(device_config())
    assert grows() and limits() == []


@pytest.mark.parametrize("enable", [True, False])
def test_the_users_own_choice_of_growth_stays(enable, gpus):
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, enable)
    devices.grow_memory()
    assert grows() == enable


def test_the_users_own_logical_devices_stay(gpus):
    own = [tf.config.LogicalDeviceConfiguration(memory_limit=100)] * 2
    tf.config.set_logical_device_configuration(gpus[1], own)
    devices.grow_memory()
    assert limits() == [[], [100, 100]]


def test_only_visible_gpus_are_set_up(gpus):
    tf.config.set_visible_devices(gpus[1:], "GPU")
    devices.grow_memory()
    growth = tf.config.experimental.get_memory_growth
    assert [growth(gpu) for gpu in gpus] == [None, True]


def test_devices_in_use_stay_as_they_are(gpus, monkeypatch):
    monkeypatch.setattr(context.context(), "_context_handle", object(), raising=False)
    devices.grow_memory()
    assert not grows()
    with raises_code("unavailable", "gpu_memory_limit=10", "new process"):
        devices.limit_memory(10)


def test_a_limit_holds_for_each_gpu(gpus, monkeypatch):
    monkeypatch.setattr(devices, "largest_memory", lambda: 4096)
    devices.configure_devices(device_config(gpu_memory_limit=4096))
    assert limits() == [[4096], [4096]]


def test_a_limit_above_the_cards_memory(gpus, monkeypatch):
    monkeypatch.setattr(devices, "largest_memory", lambda: 4095)
    with raises_code("invalid", "gpu_memory_limit=4096", "4095 MB"):
        devices.configure_devices(device_config(gpu_memory_limit=4096))


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [("15360\n", 15360), ("15360\n81559\n", 81559), ("[N/A]\n", None), ("", None)],
)
def test_the_memory_that_nvidia_smi_tells(text, megabytes, tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<end\n{text}end\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert devices.largest_memory() == megabytes


def test_without_a_gpu_a_line_says_why_and_what_has_no_effect(monkeypatch, caplog):
    monkeypatch.setattr(devices, "unused_card", lambda: "This machine has a GPU without a driver.")
    devices.configure_devices(device_config(gpu_memory_limit=100))
    assert "without a driver. The computation runs on the CPU." in caplog.text
    assert "gpu_memory_limit has no effect" in caplog.text


PCI = "sys/bus/pci/devices/0000:01:00.0"
GPU, SOUND = ({"vendor": "0x10de\n", "class": kind} for kind in ("0x030000\n", "0x040300\n"))
AMD = {"vendor": "0x1002\n", "class": "0x030000\n"}


def files(pci, **more):
    return {f"{PCI}/{name}": text for name, text in pci.items()} | more


@pytest.mark.parametrize(
    ("found", "visible", "words"),
    [
        ({}, None, None),
        ({"dev/nvidia0": ""}, None, "library of CUDA"),
        ({"dev/nvidia0": ""}, "-1", None),
        ({"dev/nvidia0": ""}, "", None),
        ({"dev/nvidia0": ""}, "0", "library of CUDA"),
        ({"dev/nvidiactl": ""}, None, None),
        ({devices.WSL_DRIVER: ""}, None, "library of CUDA"),
        (files(GPU), None, "without a driver"),
        (files(SOUND), None, None),
        (files(AMD), None, None),
        # In a container that does not get the card of its host.
        (files(GPU) | {"proc/driver/nvidia/version": ""}, None, None),
    ],
)
def test_a_card_that_tensorflow_does_not_see(found, visible, words, tmp_path, monkeypatch):
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    for name, text in found.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    problem = devices.unused_card(str(tmp_path))
    assert problem is None if words is None else words in problem


def test_a_tensorflow_without_cuda(tmp_path, monkeypatch):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: False)
    assert "tensorflow[and-cuda]" in devices.unused_card(str(tmp_path))
