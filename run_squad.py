#!/usr/bin/env python3
"""Trains, evaluates and applies an adapter (or a baseline) on SQuAD 1.1 or 2.0.

python run_squad.py --train_file=train-v1.1.json --predict_file=dev-v1.1.json --do_train \
    --do_predict --num_train_epochs=3 --output_dir=out/squad
"""

import sys

from absl import app

from adapter_bert_tf.command import usage
from adapter_bert_tf.command.definitions import define_flags
from adapter_bert_tf.command.main import run_job
from adapter_bert_tf.command.row import Command

define_flags(Command.SQUAD)


def main(words):
    run_job("adapter_bert_tf.run.question_answering", words)


if __name__ == "__main__":
    usage.answer(sys.argv[1:])
    app.run(main)
