"""The names that this file had before each method's configuration got a file of its own."""

from adapter_bert_tf.adapters.bottleneck_config import ACTIVATIONS as ACTIVATIONS
from adapter_bert_tf.adapters.bottleneck_config import OUTPUT_NORM as OUTPUT_NORM
from adapter_bert_tf.adapters.bottleneck_config import SUBLAYERS as SUBLAYERS
from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig as AdapterConfig
from adapter_bert_tf.adapters.fields import parse_layers as parse_layers
from adapter_bert_tf.adapters.presets import PRESETS as PRESETS
