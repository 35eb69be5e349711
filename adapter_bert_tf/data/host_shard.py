"""The rows of every global batch that a host reads, with several replicas or hosts."""

from __future__ import annotations

import dataclasses

from adapter_bert_tf.lazy import tf


@dataclasses.dataclass(frozen=True)
class HostShard:
    """The replicas of a host; the default is one host with one replica."""

    replicas: int = 1  # Over all hosts.
    first: int = 0  # Index of this host's first replica.
    local: int = 1  # Number of this host's replicas.

    @classmethod
    def from_context(cls, context: tf.distribute.InputContext) -> HostShard:
        """Returns the shard of a `tf.distribute.InputContext`."""
        replicas = context.num_replicas_in_sync
        local = replicas // context.num_input_pipelines
        return cls(replicas, context.input_pipeline_id * local, local)

    def split(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Splits global batches, pairs of rows `[batch, ...]` and a tensor for every replica.

        Rows are a tensor, or a structure of tensors.

        All hosts read the same batches in the same order, so the global batches do not depend on
        the number of hosts. Each host prepares only its own rows: one pair for each local replica
        and step, `[batch / replicas, ...]`. The number of replicas must divide the batch size.
        """
        if self.replicas == 1:
            return dataset

        def local_part(rows):
            parts = tf.reshape(rows, tf.concat([[self.replicas, -1], tf.shape(rows)[1:]], 0))
            parts = parts[self.first : self.first + self.local]
            parts.set_shape(
                [self.local, rows.shape[0] and rows.shape[0] // self.replicas, *rows.shape[1:]]
            )
            return parts

        def local_parts(rows, common):
            parts = tf.nest.map_structure(local_part, rows)
            return parts, tf.repeat(common[tf.newaxis], self.local, axis=0)

        return dataset.map(local_parts).unbatch()


WHOLE_BATCH = HostShard()
