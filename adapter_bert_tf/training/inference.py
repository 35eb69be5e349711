"""Predictions: the outputs of every row, once, whatever the number of replicas."""

import tensorflow as tf

from adapter_bert_tf.training.strategy import distribute, one_of_several


def predict(model, batches):
    """Runs a model over batches.

    Args:
      model: `tf_keras.Model`, compiled.
      batches: function of a `Share` that returns a `tf.data.Dataset` of inputs, one element a local
        replica and batch.

    Yields:
      the outputs of one global batch, float32 array `[batch, ...]`, in the order of its rows; on
      every host those of all.
    """
    strategy = model.distribute_strategy
    forward = tf.function(
        lambda inputs: model(inputs, training=False),
        jit_compile=model.jit_compile,
        reduce_retracing=True,
    )

    @tf.function(reduce_retracing=True)
    def step(inputs):
        outputs = strategy.run(forward, args=(inputs,))
        if one_of_several(strategy):
            return strategy.gather(outputs, axis=0)
        return tf.concat(strategy.experimental_local_results(outputs), 0)

    for inputs in distribute(strategy, batches):
        yield step(inputs).numpy()
