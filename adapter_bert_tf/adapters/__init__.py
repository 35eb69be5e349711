"""What is inserted into the frozen base: adapters, and the encoder that has room for them."""

# A kind of parts is known once its module is imported: one line each.
from adapter_bert_tf.adapters import config as config
from adapter_bert_tf.adapters.methods import fusion_config as fusion_config
from adapter_bert_tf.adapters.methods import hyperformer as hyperformer
from adapter_bert_tf.adapters.methods import per_task as per_task
from adapter_bert_tf.adapters.methods import projected_attention as projected_attention
