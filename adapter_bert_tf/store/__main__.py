"""`python -m adapter_bert_tf.store` is `adapter-bert store`."""

import sys

from adapter_bert_tf.cli.store import main

if __name__ == "__main__":
    sys.exit(main())
