"""The pretrained base: finds it, reads it in any of three formats, and identifies it."""

from adapter_bert_tf.base.loading import Base, load_base, open_base

__all__ = ["Base", "load_base", "open_base"]
