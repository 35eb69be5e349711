"""Where XLA's tools are looked for."""

from adapter_bert_tf.training.device import xla_tools
from adapter_bert_tf.training.device.xla_tools import Tool
from tests.programs import program

PTXAS = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release {0}, V{0}.86"


def test_ptxas_is_the_first_that_is_new_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(xla_tools, "_toolkits", lambda inner: [f"{tmp_path}/pip/{inner}"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert xla_tools.find_ptxas() == Tool() and xla_tools.find_libdevice() == ""
    program(tmp_path / "pip/bin", "ptxas", PTXAS.format("12.9"), monkeypatch)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    program(tmp_path / "old", "ptxas", PTXAS.format("11.5"), monkeypatch)
    assert xla_tools.find_ptxas() == Tool(f"{tmp_path}/pip/bin/ptxas", (12, 9, 86))
    program(tmp_path / "flag/bin", "ptxas", PTXAS.format("12.5"), monkeypatch)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("XLA_FLAGS", f"--xla_x=1 --xla_gpu_cuda_data_dir={tmp_path}/flag")
    assert xla_tools.find_ptxas() == Tool(f"{tmp_path}/flag/bin/ptxas", (12, 5, 86))
    assert xla_tools.missing_tools.__wrapped__() == ("libdevice.10.bc",)
    libdevice = tmp_path / "pip/nvvm/libdevice/libdevice.10.bc"
    libdevice.parent.mkdir(parents=True)
    libdevice.write_text("")
    assert xla_tools.missing_tools.__wrapped__() == ()
    assert xla_tools.find_libdevice() == f"{tmp_path}/pip/nvvm/libdevice/libdevice.10.bc"
