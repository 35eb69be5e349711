"""Expected errors: their code, and the flags, files or values that their message names."""

import contextlib

import pytest

from adapter_bert_tf.errors import InputError


@contextlib.contextmanager
def raises_code(code, *names):
    """Expects an `InputError` of this code whose message holds each name, as plain text.

    Tables of tests write code and name in one text: "damaged: a.tsv, line 3".
    """
    code, _, name = code.partition(": ")
    with pytest.raises(InputError) as raised:
        yield raised
    assert raised.value.code == code, raised.value
    for text in (name, *names):
        assert text in str(raised.value)
