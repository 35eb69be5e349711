#!/usr/bin/env python3
"""Trains, evaluates and applies an adapter (or a baseline) on a classification task.

python run_classifier.py --task_name=MRPC --data_dir=GLUE/MRPC --do_train --do_eval \
    --learning_rate=1e-3 --num_train_epochs=5 --output_dir=out/mrpc
"""

import sys

from absl import app

from adapter_bert_tf.command import usage
from adapter_bert_tf.command.definitions import define_flags
from adapter_bert_tf.command.main import run_job
from adapter_bert_tf.command.row import Command

define_flags(Command.CLASSIFIER)


def main(words):
    run_job("adapter_bert_tf.run.classification", words)


if __name__ == "__main__":
    usage.answer(sys.argv[1:])
    app.run(main)
