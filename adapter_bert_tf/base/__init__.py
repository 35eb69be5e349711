"""The pretrained base: find it, read it in any of three formats, know it again."""

from adapter_bert_tf.base.loading import Base, load_base, open_base

__all__ = ["Base", "load_base", "open_base"]
