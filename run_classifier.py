#!/usr/bin/env python3
"""Trains, evaluates and applies an adapter (or a baseline) on a classification task.

python run_classifier.py --task_name=MRPC --data_dir=GLUE/MRPC --do_train --do_eval \\
    --learning_rate=1e-3 --num_train_epochs=5 --output_dir=out/mrpc
"""

import sys

from absl import app

from adapter_bert_tf.cli import help_page
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command

define_flags(Command.CLASSIFIER)


def main(words):
    run_job("adapter_bert_tf.jobs.classification", words)


if __name__ == "__main__":
    help_page.print_help_if_asked(sys.argv[1:])
    app.run(main)
