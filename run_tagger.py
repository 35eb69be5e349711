#!/usr/bin/env python3
"""Trains, evaluates and applies an adapter (or a baseline) that tags words: names, parts of speech.

python run_tagger.py --data_dir=wnut17 --do_train --do_eval --do_predict --num_train_epochs=10 \\
    --output_dir=out/wnut17
"""

import sys

from absl import app

from adapter_bert_tf.cli import help_page
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command

define_flags(Command.TAGGER)


def main(words):
    run_job("adapter_bert_tf.jobs.tagging", words)


if __name__ == "__main__":
    help_page.print_help_if_asked(sys.argv[1:])
    app.run(main)
