"""Adapters: their configurations, their computation, and the encoder that runs with them."""

# A kind of modules is registered when its file is imported: one line for each method.
from adapter_bert_tf.adapters.languages import invertible as invertible
from adapter_bert_tf.adapters.languages import stack as stack
from adapter_bert_tf.adapters.methods import bottleneck as bottleneck
from adapter_bert_tf.adapters.methods import compacter as compacter
from adapter_bert_tf.adapters.methods import fusion as fusion
from adapter_bert_tf.adapters.methods import gated as gated
from adapter_bert_tf.adapters.methods import hyperformer as hyperformer
from adapter_bert_tf.adapters.methods import ia3 as ia3
from adapter_bert_tf.adapters.methods import lora as lora
from adapter_bert_tf.adapters.methods import per_task as per_task
from adapter_bert_tf.adapters.methods import prefix as prefix
from adapter_bert_tf.adapters.methods import projected_attention as projected_attention
from adapter_bert_tf.adapters.methods import union as union
