"""Flags of the optimizer and of dropout, of every command that trains."""

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Row

ROWS = (
    Row(
        "optimizer",
        "choice",
        "adamw",
        "AdamW with bounded updates; without the bound; adapter-bert's, without bias correction.",
        Role.TRAINING,
        choices=("adamw", "adamw_unclipped", "adapter_bert"),
    ),
    Row(
        "weight_decay",
        "real",
        0.01,
        "Share of each weight that a step takes away, times the learning rate; not of LayerNorms "
        "and biases.",
        Role.TRAINING,
        lowest=0.0,
    ),
    Row(
        "dropout",
        "real",
        None,
        "Rate of base and head in training, of hidden states and of attention. Default: the "
        "base's own, 0.1 of most.",
        Role.TRAINING,
        lowest=0.0,
        highest=0.999,
    ),
)
