"""Worker processes of this machine: the local runner, and what it starts.

    python -m adapter_bert_tf.beam.workers    # one worker; the runner sets its environment

A worker prints nothing: an error goes to the process that started it, and it ends with that one.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
import time
from typing import Any


def local_runner(workers: int) -> Any:
    """Returns Beam's runner of this machine.

    It is named, because Beam's default looks for another one on the network first.

    Args:
      workers: 1: this process; more: so many others.
    """
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    if workers == 1:
        return FnApiRunner()
    # Without `exec` a shell stands between, and is killed in place of the worker.
    command = f"exec {shlex.quote(sys.executable)} -m adapter_bert_tf.beam.workers"
    return FnApiRunner(SubprocessSDKEnvironment.from_command_string(command))


def local_options(workers: int) -> dict[str, Any]:
    """The options of Beam for it."""
    return {"direct_num_workers": workers, "direct_running_mode": "in_memory"}


def main() -> None:
    """Runs one worker of Beam."""
    logging.disable(logging.CRITICAL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


def _end_with(parent: int) -> None:
    """Ends this process when its parent has: a killed one stops no worker."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()
