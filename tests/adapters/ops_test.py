"""Dense layers and LayerNorm with one set of weights, one a row, or several members, by numpy."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.ops import MEMBERS, ROWS, dense, layer_norm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5, 4)).astype("f4")
KERNELS, BIASES = RNG.normal(size=(3, 4, 2)).astype("f4"), RNG.normal(size=(3, 2)).astype("f4")
GAMMAS, BETAS = RNG.normal(size=(3, 4)).astype("f4"), RNG.normal(size=(3, 4)).astype("f4")


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


DENSE = {
    "shared": (X, KERNELS[0], BIASES[0], None, X @ KERNELS[0] + BIASES[0]),
    "vectors": (X[:, 0], KERNELS[0], BIASES[0], None, X[:, 0] @ KERNELS[0] + BIASES[0]),
    "rows": (X, KERNELS, BIASES, ROWS, [X[i] @ KERNELS[i] + BIASES[i] for i in range(3)]),
    "rows of vectors": (
        X[:, 0], KERNELS, BIASES, ROWS, [X[i, 0] @ KERNELS[i] + BIASES[i] for i in range(3)]
    ),
    "members": (
        X, KERNELS, BIASES, MEMBERS, np.stack([X @ KERNELS[i] + BIASES[i] for i in range(3)], 2)
    ),
    "members of members": (
        np.stack([X, 2 * X, 3 * X], 2), KERNELS, BIASES, MEMBERS,
        np.stack([(i + 1) * X @ KERNELS[i] + BIASES[i] for i in range(3)], 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DENSE)
def test_dense(case):
    x, kernel, bias, stacked, expected = DENSE[case]
    actual = dense(tf.constant(x), tf.constant(kernel), tf.constant(bias), stacked)
    np.testing.assert_allclose(actual, expected, atol=1e-5)


NORMS = {
    "shared": (GAMMAS[0], BETAS[0], None, normalized(X) * GAMMAS[0] + BETAS[0]),
    "rows": (GAMMAS, BETAS, ROWS, normalized(X) * GAMMAS[:, None] + BETAS[:, None]),
    "members": (
        GAMMAS, BETAS, MEMBERS, normalized(X)[:, :, None] * GAMMAS + BETAS
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NORMS)
def test_layer_norm(case):
    gamma, beta, stacked, expected = NORMS[case]
    actual = layer_norm(tf.constant(X), tf.constant(gamma), tf.constant(beta), stacked=stacked)
    np.testing.assert_allclose(actual, expected, atol=1e-4)
