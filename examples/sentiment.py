"""Trains an adapter on lists of texts and labels, and predicts.

python examples/sentiment.py
"""

import adapter_bert_tf as abt

GOOD = ["It arrived on time.", "Just what I wanted.", "Works well.", "I would buy it again."]
BAD = ["It never came.", "It broke at once.", "The wrong size.", "I asked for my money back."]

task = abt.train(
    GOOD * 8 + BAD * 8,
    ["good"] * 32 + ["bad"] * 32,
    dev=(["It works.", "It does not work."], ["good", "bad"]),
    num_train_epochs=6,
    train_batch_size=8,
    max_seq_length=32,
)
print(task.results)
for text in ("Well made, and quick to arrive.", "The handle came off."):
    print(text, "->", task(text))
task.save("adapters/sentiment")  # A few megabytes; the base is found by name.
print(abt.Predictor("adapters/sentiment")("It leaks."))
