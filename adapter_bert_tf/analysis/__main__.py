"""`python -m adapter_bert_tf.analysis` is `adapter-bert analyze`."""

import sys

from adapter_bert_tf.cli.analyze import main

if __name__ == "__main__":
    sys.exit(main())
