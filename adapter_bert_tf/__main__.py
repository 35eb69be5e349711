"""`python -m adapter_bert_tf` is `adapter-bert`."""

import sys

from adapter_bert_tf.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
