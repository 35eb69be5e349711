"""Trains, evaluates and applies an adapter (or a baseline) on SQuAD 1.1 or 2.0.

python run_squad.py --train_file=train-v1.1.json --predict_file=dev-v1.1.json --do_train \
    --do_predict --num_train_epochs=3 --output_dir=out/squad
"""

from absl import app

from adapter_bert_tf.run.flags import define_shared_flags, define_squad_flags, run_job

define_squad_flags()
define_shared_flags(max_seq_length=384)


def main(_):
    run_job("adapter_bert_tf.run.question_answering")


if __name__ == "__main__":
    app.run(main)
