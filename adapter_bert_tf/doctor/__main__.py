"""`python -m adapter_bert_tf.doctor` is `adapter-bert doctor`."""

import sys

from adapter_bert_tf.doctor.command import main

if __name__ == "__main__":
    sys.exit(main())
