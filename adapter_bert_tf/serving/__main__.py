"""`python -m adapter_bert_tf.serving` is `adapter-bert serve`."""

import sys

from adapter_bert_tf.cli.serve import main

if __name__ == "__main__":
    sys.exit(main())
