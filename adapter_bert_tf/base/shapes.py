"""The shapes of a BERT's variables, from its sizes alone."""

from adapter_bert_tf.adapters.parts import POOLER


def base_shapes(sizes):
    """Dict from common name to shape, as Model Garden's layers have them.

    Args:
      sizes: dict with `vocab_size`, `hidden_size`, `num_layers`, `num_attention_heads`,
        `inner_dim`, `max_sequence_length` and `type_vocab_size`.
    """
    hidden = sizes["hidden_size"]
    shapes = {
        "bert/embeddings/word_embeddings": (sizes["vocab_size"], hidden),
        "bert/embeddings/position_embeddings": (sizes["max_sequence_length"], hidden),
        "bert/embeddings/token_type_embeddings": (sizes["type_vocab_size"], hidden),
        **_norm("bert/embeddings/LayerNorm", hidden),
    }
    for i in range(sizes["num_layers"]):
        shapes |= _block_shapes(f"bert/encoder/layer_{i}", sizes)
    return shapes | _dense(POOLER, (hidden,), (hidden,))


def _block_shapes(prefix, sizes):
    hidden, inner = (sizes["hidden_size"],), (sizes["inner_dim"],)
    heads = (sizes["num_attention_heads"], hidden[0] // sizes["num_attention_heads"])
    return {
        **_dense(f"{prefix}/attention/self/query", hidden, heads),
        **_dense(f"{prefix}/attention/self/key", hidden, heads),
        **_dense(f"{prefix}/attention/self/value", hidden, heads),
        **_dense(f"{prefix}/attention/output/dense", heads, hidden),
        **_norm(f"{prefix}/attention/output/LayerNorm", hidden[0]),
        **_dense(f"{prefix}/intermediate/dense", hidden, inner),
        **_dense(f"{prefix}/output/dense", inner, hidden),
        **_norm(f"{prefix}/output/LayerNorm", hidden[0]),
    }


def _dense(prefix, inputs, outputs):
    return {f"{prefix}/kernel": (*inputs, *outputs), f"{prefix}/bias": outputs}


def _norm(prefix, hidden):
    return {f"{prefix}/gamma": (hidden,), f"{prefix}/beta": (hidden,)}
