"""Roles of settings; all that the program needs to know about a setting follows from its role."""

import dataclasses
import enum


class Identity(enum.Enum):
    """What a run becomes with another value of a setting."""

    ANOTHER_RUN = "another run, which cannot resume the first"
    OTHER_RESULTS = "the same training, with other results"
    THE_SAME = "the same run"


@dataclasses.dataclass(frozen=True)
class Facts:
    """Consequences of a role.

    Args:
      meaning: of settings with this role.
      identity: of a run with another value.
      swept: whether the runs of a sweep may differ in it.
      reads: whether it decides which data a run reads.
      repeated: whether `--config=RUN.json` repeats its value.
    """

    meaning: str
    identity: Identity = Identity.ANOTHER_RUN
    swept: bool = True
    reads: bool = False
    repeated: bool = True


_RESULTS, _SAME = Identity.OTHER_RESULTS, Identity.THE_SAME


class Role(enum.Enum):
    """Purpose of a setting; the attributes are those of `Facts`."""

    # Data.
    TASK = Facts("Which data; common to the runs of a sweep.", swept=False, reads=True)
    READING = Facts("How the data is read and cut.", reads=True)
    ASKED = Facts("Which data is answered after training.", _RESULTS, swept=False, reads=True)
    DECODING = Facts("How answers are decoded from scores.", _RESULTS, reads=True)
    METRIC = Facts("By which metric weights and runs are chosen.", swept=False, reads=True)
    NAME = Facts("Name of the task in the adapter.", _RESULTS, swept=False, reads=True)
    ONE_QUESTION = Facts("A single question to answer.", _SAME)
    # Model.
    BASE = Facts("Which base.")
    METHOD = Facts("What is trained, with which adapter; a saved adapter decides this itself.")
    LEFT_OUT = Facts("What is left out or rounded, also in a saved adapter.")
    START = Facts("What the training starts from.")
    # Training.
    TRAINING = Facts("How it is trained.")
    SEED = Facts("Random seed; a sweep sets it for its runs.", swept=False)
    # Devices.
    DEVICES = Facts("Devices and precision, on which the last digits depend.")
    ADDRESS = Facts("Where the devices are.", _SAME)
    PACE = Facts("How much is computed at a time.", _SAME)
    # Actions.
    TRAIN = Facts("To train.", swept=False, reads=True)
    APPLY = Facts("To apply what is trained.", _SAME, swept=False, reads=True)
    EXPORT = Facts("To export what is trained.", _SAME, swept=False)
    # Places.
    PLACE = Facts("Where a run writes.", _SAME, swept=False, repeated=False)
    ADAPTER = Facts("The adapter that is written, or read.", swept=False, repeated=False)
    CACHE = Facts("Where data is cached between runs.", _SAME, swept=False, reads=True)
    # The command itself.
    COMMAND = Facts("How this command starts.", _SAME, swept=False, repeated=False)
    REPORT = Facts("Whether a run ends with a report.", _SAME, swept=False)
    ONLY_CHECKED = Facts("Whether only checks are run.", _SAME, swept=False)
    SWEEP = Facts("Which runs the command consists of.", swept=False)
    UNUSED = Facts("Nothing; kept for old command lines.", _SAME)

    def __init__(self, facts: Facts) -> None:
        self.meaning, self.identity = facts.meaning, facts.identity
        self.swept, self.reads, self.repeated = facts.swept, facts.reads, facts.repeated
