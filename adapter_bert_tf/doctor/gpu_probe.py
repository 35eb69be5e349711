"""Collects the facts on the GPUs of this machine."""

import dataclasses
import glob
import os
import pathlib
import platform
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.doctor import cuda_libraries
from adapter_bert_tf.doctor.cuda_driver import read_driver
from adapter_bert_tf.doctor.gpu_facts import Build, GpuFacts
from adapter_bert_tf.training.device import xla_tools
from adapter_bert_tf.training.device.devices import (
    WSL_DRIVER,
    code_range,
    has_pci_card,
    hide_unsupported_cards,
)
from adapter_bert_tf.training.device.precision import fastest_precision, gpu_capabilities


def read_facts(root: str = "/") -> GpuFacts:
    """Returns all facts. Without a card this opens no library and starts no process.

    Args:
      root: the root of the file system; another one in tests.
    """
    facts = look_for_card(root)
    if not facts.has_card or facts.is_hidden:
        return facts
    hide_unsupported_cards()
    facts = dataclasses.replace(
        facts,
        driver=read_driver(),
        build=read_build(tf.sysconfig.get_build_info()),
        used=len(tf.config.get_visible_devices("GPU")),
        precision=fastest_precision(gpu_capabilities()),
    )
    if not facts.driver.gpus:
        return facts
    return dataclasses.replace(
        facts,
        libraries=cuda_libraries.read_libraries(),
        ptxas=xla_tools.find_ptxas(),
        libdevice=xla_tools.find_libdevice(),
    )


def look_for_card(root: str) -> GpuFacts:
    """Returns what the files of the system tell, below `root`."""
    nodes = glob.glob(os.path.join(root, "dev", "nvidia[0-9]*"))
    nodes += glob.glob(os.path.join(root, "dev", "nvidiactl"))
    in_windows = os.path.exists(os.path.join(root, WSL_DRIVER))
    return GpuFacts(
        system=platform.system(),
        is_wsl=in_windows or "microsoft" in _read(pathlib.Path(root, "proc/version")).lower(),
        has_card=in_windows or bool(nodes) or has_pci_card(root),
        denied=tuple(sorted(path for path in nodes if not os.access(path, os.R_OK | os.W_OK))),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def read_build(info: Mapping[str, Any]) -> Build:
    """Returns what `tf.sysconfig.get_build_info()` says of CUDA."""
    if not info.get("is_cuda_build"):
        return Build(has_cuda=False)
    supported = code_range(info["cuda_compute_capabilities"])
    return Build(True, info["cuda_version"], info["cudnn_version"], *supported)
