#!/usr/bin/env python3
"""Trains an adapter on plain text, to predict masked words.

python run_adapt.py --text_files=a.txt,folder,'part-*.txt.gz' --adapter=pfeiffer+inv \\
    --output_dir=out/text
"""

import sys

from absl import app

from adapter_bert_tf.cli import help_page
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command

define_flags(Command.ADAPT)


def main(words):
    run_job("adapter_bert_tf.jobs.plain_text", words)


if __name__ == "__main__":
    help_page.print_help_if_asked(sys.argv[1:])
    app.run(main)
