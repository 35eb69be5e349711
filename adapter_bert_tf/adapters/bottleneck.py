"""The bottleneck: the one computation that every adapter method adds."""

import tensorflow as tf

ACTIVATION_FUNCTIONS = {
    "gelu": lambda x: tf.nn.gelu(x, approximate=True),
    "gelu_erf": lambda x: tf.nn.gelu(x, approximate=False),
    "relu": tf.nn.relu,
    "swish": tf.nn.silu,
    "tanh": tf.math.tanh,
    "linear": lambda x: x,
}


def bottleneck(x, down_kernel, down_bias, up_kernel, up_bias, activation, middle=None):
    """Projects down, applies the nonlinearity, projects up (Houlsby et al. 2019, section 2.1).

    Every kernel and bias may have a leading `[batch]`: each row of `x` then has its own.

    Args:
      x: float `[batch, seq, hidden]`.
      down_kernel: `[hidden, bottleneck]`.
      down_bias: `[bottleneck]`.
      up_kernel: `[bottleneck, hidden]`.
      up_bias: `[hidden]`.
      activation: function of a tensor.
      middle: kernel `[bottleneck, bottleneck]` and bias of a second layer, or None.

    Returns:
      `[batch, seq, hidden]` in the dtype of `x`, without the skip connection.
    """
    narrow = activation(dense(x, down_kernel, down_bias))
    if middle is not None:
        narrow = activation(dense(narrow, *middle))
    return dense(narrow, up_kernel, up_bias)


def dense(x, kernel, bias):
    """A dense layer on vectors or sequences.

    Args:
      x: float `[batch, size]` or `[batch, seq, size]`.
      kernel: `[size, width]`, or `[batch, size, width]`, one for each row.
      bias: `[width]` or `[batch, width]`.
    """
    if kernel.shape.rank == 2:
        return tf.nn.bias_add(tf.tensordot(x, kernel, 1), bias)
    if x.shape.rank == 3:
        return tf.matmul(x, kernel) + bias[:, tf.newaxis]
    return tf.squeeze(tf.matmul(x[:, tf.newaxis], kernel), 1) + bias


def layer_norm(x, gamma, beta, epsilon=1e-12):
    """Layer normalization over the last axis, as tf_keras' layer computes it at this epsilon.

    Args:
      x: float32 `[batch, seq, hidden]`.
      gamma, beta: `[hidden]`, or `[batch, hidden]`, one for each row.
      epsilon: added to the variance.
    """
    if gamma.shape.rank == 2:
        gamma, beta = gamma[:, tf.newaxis], beta[:, tf.newaxis]
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def variable_shapes(config, hidden_size):
    """Dict from the names of one adapter's variables to their shapes."""
    size = config.bottleneck_size
    shapes = {
        "down_kernel": (hidden_size, size),
        "down_bias": (size,),
        "up_kernel": (size, hidden_size),
        "up_bias": (hidden_size,),
    }
    if config.depth == 2:
        shapes |= {"middle_kernel": (size, size), "middle_bias": (size,)}
    if config.layer_norm:
        shapes |= {"layer_norm_gamma": (hidden_size,), "layer_norm_beta": (hidden_size,)}
    return shapes


def adapt(config, values, output, residual, block_norm, dropout=None):
    """Adapts one sublayer's output: `output + scale * bottleneck(source)`.

    The source is the sublayer's output (serial), its input (parallel), or
    LayerNorm(input + output) (`normalize_input`); see `AdapterConfig`.

    Args:
      config: the `AdapterConfig`.
      values: dict from the names of `variable_shapes` to variables or tensors in those shapes, or
        all with a leading `[batch]`.
      output: `[batch, seq, hidden]`, the sublayer's output after its dropout.
      residual: `[batch, seq, hidden]`, the sublayer's input.
      block_norm: the LayerNorm that the block applies to `residual + output`.
      dropout: function of the bottleneck's result, or None.

    Returns:
      `[batch, seq, hidden]`, float32 if `residual` is: the skip connection is not rounded.
    """
    source = residual if config.placement == "parallel" else output
    if config.normalize_input:
        source = block_norm(tf.cast(output, residual.dtype) + residual)
    if config.layer_norm:
        source = layer_norm(
            tf.cast(source, residual.dtype), values["layer_norm_gamma"], values["layer_norm_beta"]
        )
    dtype = output.dtype
    kernels = {
        name: tf.cast(value, dtype)
        for name, value in values.items()
        if not name.startswith("layer_norm")
    }
    middle = (kernels["middle_kernel"], kernels["middle_bias"]) if config.depth == 2 else None
    change = bottleneck(
        tf.cast(source, dtype),
        kernels["down_kernel"],
        kernels["down_bias"],
        kernels["up_kernel"],
        kernels["up_bias"],
        ACTIVATION_FUNCTIONS[config.activation],
        middle,
    )
    if dropout is not None:
        change = dropout(change)
    if config.scale != 1.0:
        change = change * config.scale
    return tf.cast(output, residual.dtype) + tf.cast(change, residual.dtype)
