"""What the doctor knows of the GPUs of a machine, as plain values that a test can make up."""

import dataclasses

from adapter_bert_tf.training.device.visibility import hides_all
from adapter_bert_tf.training.device.xla_tools import Tool, Version


def format_version(version: Version) -> str:
    """Returns "12.5.82" for (12, 5, 82)."""
    return ".".join(map(str, version))


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A card, or an instance of a divided one, that the driver shows to this process."""

    name: str
    capability: Version
    memory_mb: int
    free_mb: int | None = None


@dataclasses.dataclass(frozen=True)
class Driver:
    """NVIDIA's driver.

    Args:
      status: what `cuInit` returned, 0 for success; None without `libcuda.so.1`.
      version: of the driver; "" if unknown.
      cuda: newest CUDA that the driver supports.
      gpus: in CUDA's order.
      divided: names of the cards that are divided into instances (MIG).
    """

    status: int | None = None
    version: str = ""
    cuda: Version = ()
    gpus: tuple[Gpu, ...] = ()
    divided: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Build:
    """What TensorFlow was built for.

    Args:
      has_cuda: whether it can use NVIDIA's GPUs at all.
      cuda, cudnn: versions of the build.
      lowest, highest: compute capabilities that it has code for; it ignores cards below.
    """

    has_cuda: bool = True
    cuda: str = "12.5.1"
    cudnn: str = "9"
    lowest: Version = (6, 0)
    highest: Version = (9, 0)


@dataclasses.dataclass(frozen=True)
class Library:
    """A library of CUDA, under the name by which TensorFlow opens it.

    Args:
      name: `libcudnn.so.9`.
      path: the file, or the name alone if the system's loader finds it.
      error: why it cannot be opened; "" if it can.
      version: as far as the library says it.
      others: names of other versions of it that are there.
    """

    name: str
    path: str = ""
    error: str = ""
    version: Version = ()
    others: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class GpuFacts:
    """Everything that the findings on GPUs follow from.

    Args:
      system: `platform.system()`.
      is_wsl: whether this is Linux within Windows.
      has_card: whether there is an NVIDIA card, seen without a driver.
      denied: device files of the card that this user may not open.
      visible: the environment variable `CUDA_VISIBLE_DEVICES`.
      libraries, ptxas, libdevice: looked for only if the driver shows a card. `libdevice` is a
        path, or "".
      used: number of GPUs that commands use.
      precision: what `--precision=auto` chooses for them.
    """

    system: str = "Linux"
    is_wsl: bool = False
    has_card: bool = False
    denied: tuple[str, ...] = ()
    visible: str | None = None
    driver: Driver = Driver()
    build: Build = Build()
    libraries: tuple[Library, ...] = ()
    ptxas: Tool = dataclasses.field(default_factory=Tool)
    libdevice: str = ""
    used: int = 0
    precision: str = "float32"

    @property
    def is_hidden(self) -> bool:
        """Whether the user hides all cards from CUDA."""
        return hides_all(self.visible)
