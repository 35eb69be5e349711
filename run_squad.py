#!/usr/bin/env python3
"""Trains, evaluates and applies an adapter (or a baseline) on SQuAD 1.1 or 2.0.

python run_squad.py --train_file=train-v1.1.json --predict_file=dev-v1.1.json --do_train \\
    --do_predict --num_train_epochs=3 --output_dir=out/squad
"""

import sys

from absl import app

from adapter_bert_tf.cli import help_page
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command

define_flags(Command.SQUAD)


def main(words):
    run_job("adapter_bert_tf.jobs.questions", words)


if __name__ == "__main__":
    help_page.print_help_if_asked(sys.argv[1:])
    app.run(main)
