"""Python's garbage collector never looks at what commands import."""

import gc
import subprocess
import sys

from adapter_bert_tf.cli.importing import import_tensorflow

SCRIPT = """
import gc
from adapter_bert_tf.cli.error_handling import before_tensorflow
from adapter_bert_tf.cli.importing import import_tensorflow
before_tensorflow()
import_tensorflow("adapter_bert_tf.predict.predictor")
print(gc.isenabled(), gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 1_000)
"""


def test_what_is_imported_is_left_alone():
    words = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "True True True\n"


def test_models_of_a_process_that_goes_on_are_collected(request):
    import tensorflow  # noqa: F401 (was imported before)

    request.addfinalizer(gc.enable)
    frozen = gc.get_freeze_count()
    gc.disable()
    import_tensorflow()
    assert not gc.isenabled() and gc.get_freeze_count() <= frozen  # Some may be freed meanwhile.
