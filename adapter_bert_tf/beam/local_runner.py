"""Beam's runner of this machine: in this process, or with worker processes of its own."""

from __future__ import annotations

import shlex
import sys
from typing import Any


def local_runner(workers: int) -> Any:
    """Returns the runner.

    It is named, because Beam's default looks for another one on the network first.

    Args:
      workers: 1: this process; more: so many others.
    """
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    if workers == 1:
        return FnApiRunner()
    # Without `exec` a shell stands between, and is killed in place of the worker.
    command = f"exec {shlex.quote(sys.executable)} -m adapter_bert_tf.beam.worker"
    return FnApiRunner(SubprocessSDKEnvironment.from_command_string(command))


def local_options(workers: int) -> dict[str, Any]:
    """The options of Beam for it."""
    return {"direct_num_workers": workers, "direct_running_mode": "in_memory"}
