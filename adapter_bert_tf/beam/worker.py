"""A worker process of the local runner: `python -m adapter_bert_tf.beam.worker`.

It prints nothing: an error goes to the process that started it, and it ends with that one.
"""

import logging
import os
import sys
import threading
import time


def main() -> None:
    """Runs Beam's worker."""
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
