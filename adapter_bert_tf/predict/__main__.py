"""`python -m adapter_bert_tf.predict` is `adapter-bert predict`."""

import sys

from adapter_bert_tf.cli.predict import main

if __name__ == "__main__":
    sys.exit(main())
