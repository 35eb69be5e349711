"""What NVIDIA's driver says, without TensorFlow and without using a card."""

import ctypes
import subprocess
from typing import Any

from adapter_bert_tf.doctor.gpu_facts import Driver, Gpu

# From cuda.h: attributes of a device.
MAJOR, MINOR = 75, 76
TIMEOUT_SECONDS = 15  # nvidia-smi may start the driver first.
QUERY = "pci.bus_id,driver_version,memory.free,mig.mode.current,name"


def read_driver() -> Driver:
    """Returns what the driver shows to this process, as `CUDA_VISIBLE_DEVICES` allows."""
    rows = _query_cards()
    version = rows[0][1] if rows else ""
    divided = tuple(row[4] for row in rows if row[3] == "Enabled")
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Driver(None, version, divided=divided)
    status = cuda.cuInit(0)
    supported = _read_int(cuda.cuDriverGetVersion)
    newest = (supported // 1000, supported % 1000 // 10)
    free = {_bus_id(row[0]): int(row[2]) for row in rows if row[2].isdigit()}
    gpus = () if status else tuple(_read_gpus(cuda, free))
    return Driver(status, version, newest, gpus, divided)


def _read_int(function: Any, *arguments: int) -> int:
    value = ctypes.c_int()
    function(ctypes.byref(value), *arguments)
    return value.value


def _read_gpus(cuda: Any, free: dict[str, int]) -> list[Gpu]:
    """Lists the devices of an initialized driver, with the free memory of each bus id."""
    found = []
    for index in range(_read_int(cuda.cuDeviceGetCount)):
        device = _read_int(cuda.cuDeviceGet, index)
        name, bus = ctypes.create_string_buffer(100), ctypes.create_string_buffer(32)
        memory = ctypes.c_size_t()
        cuda.cuDeviceGetName(name, len(name), device)
        cuda.cuDeviceGetPCIBusId(bus, len(bus), device)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
        capability = tuple(
            _read_int(cuda.cuDeviceGetAttribute, number, device) for number in (MAJOR, MINOR)
        )
        text = name.value.decode("utf-8", "replace")
        # nvidia-smi knows the memory of the whole card, not of an instance.
        left = None if "MIG" in text else free.get(_bus_id(bus.value.decode()))
        found.append(Gpu(text, capability, memory.value >> 20, left))
    return found


def _bus_id(text: str) -> str:
    """Returns "01:00.0" for CUDA's "0000:01:00.0" and nvidia-smi's "00000000:01:00.0"."""
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain or '0', 16)}:{rest}"


def _query_cards() -> list[list[str]]:
    """Returns the fields of `QUERY` for each card; no rows if `nvidia-smi` does not answer."""
    words = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[field.strip() for field in line.split(",")] for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == len(QUERY.split(","))]
