"""Which rows of every global batch a host reads, when several devices or hosts divide the work."""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class HostShard:
    """A host's replicas among all; the default is one host with one replica.

    Args:
      replicas: number of replicas, over all hosts.
      first: number of this host's first replica.
      local: number of this host's replicas.
    """

    replicas: int = 1
    first: int = 0
    local: int = 1

    @classmethod
    def of(cls, context: tf.distribute.InputContext) -> "HostShard":
        """The share of a `tf.distribute.InputContext`."""
        replicas = context.num_replicas_in_sync
        local = replicas // context.num_input_pipelines
        return cls(replicas, context.input_pipeline_id * local, local)

    def split(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Divides global batches.

        Every host walks through the same batches in the same order, and so all see one global
        batch whatever their number; it prepares only its own rows.

        Args:
          dataset: of pairs: a tensor `[batch, ...]`, whose rows are divided, and a tensor that
            goes to every replica. The replicas must divide the batch.

        Returns:
          a dataset with one pair for each local replica and step: `[batch / replicas, ...]`.
        """
        if self.replicas == 1:
            return dataset

        def own(rows, common):
            parts = tf.reshape(rows, tf.concat([[self.replicas, -1], tf.shape(rows)[1:]], 0))
            parts = parts[self.first : self.first + self.local]
            parts.set_shape(
                [self.local, rows.shape[0] and rows.shape[0] // self.replicas, *rows.shape[1:]]
            )
            return parts, tf.repeat(common[tf.newaxis], self.local, axis=0)

        return dataset.map(own).unbatch()


WHOLE = HostShard()
