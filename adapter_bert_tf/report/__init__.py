"""`report.html`: a one-page report of an output folder, made from its files alone."""

from adapter_bert_tf.report.page import FILE as FILE
from adapter_bert_tf.report.page import build as build
from adapter_bert_tf.report.page import is_report as is_report
from adapter_bert_tf.report.page import write as write
