"""Trains two tasks on one base and predicts both in one batch.

python examples/two_tasks_one_base.py
"""

import adapter_bert_tf as abt

model = abt.AdapterModel(abt.load_base())
encoder = abt.TextEncoder(model.base.vocabulary, max_seq_length=32)
TASKS = {
    "topic": (["Shares fell.", "They won 2:1.", "Rates rise.", "A late goal."], ["money", "sport"]),
    "mood": (["Great!", "It broke.", "I love it.", "Never again."], ["good", "bad"]),
}
for name, (texts, labels) in TASKS.items():
    task = model.add_adapter(name, labels)  # A tf_keras.Model that trains only this adapter.
    task.compile("adam", task.training_loss())
    examples = abt.examples(encoder, texts * 8, labels * 16, labels)
    task.fit(*examples, epochs=3, verbose=0)
    model.save_adapter(name, f"adapters/{name}")

texts = ["The bank has doubled its profit.", "I am so happy with it."]
logits = model(encoder.inputs(texts), adapter=["topic", "mood"])  # An adapter for each row.
for text, name, row in zip(texts, ["topic", "mood"], logits.numpy(), strict=True):
    print(f"{name}: {TASKS[name][1][row.argmax()]}  {text}")
