"""What a flag is for. All that the program must know of a flag besides follows from its role."""

import dataclasses
import enum


class Identity(enum.Enum):
    """What a run is when it has another value of a flag."""

    ANOTHER_RUN = "another run: nothing of the first can be taken up"
    OTHER_RESULTS = "the same training, with other results"
    THE_SAME = "the same run"


@dataclasses.dataclass(frozen=True)
class Facts:
    """What follows from a role.

    Args:
      meaning: what flags of this role say.
      identity: what another value makes of a run.
      swept: whether the runs of a sweep may differ in it.
      reads: whether it decides what data a run holds.
      repeated: whether `--config=RUN.json` takes it over.
    """

    meaning: str
    identity: Identity = Identity.ANOTHER_RUN
    swept: bool = True
    reads: bool = False
    repeated: bool = True


_RESULTS, _SAME = Identity.OTHER_RESULTS, Identity.THE_SAME


class Role(enum.Enum):
    """What a flag is for; the attributes are those of `Facts`."""

    # Data.
    TASK = Facts("Which data; the runs of a sweep have it in common.", swept=False, reads=True)
    READING = Facts("How the data is read and cut.", reads=True)
    ASKED = Facts("Which data is asked after training.", _RESULTS, swept=False, reads=True)
    DECODING = Facts("How answers are made of scores.", _RESULTS, reads=True)
    METRIC = Facts("What weights and runs are chosen by.", swept=False, reads=True)
    NAME = Facts("What the adapter calls its task.", _RESULTS, swept=False, reads=True)
    ONE_QUESTION = Facts("A question that is answered besides.", _SAME)
    # Model.
    BASE = Facts("Which base.")
    METHOD = Facts("What is trained, with which adapter; a saved adapter decides this by itself.")
    LEFT_OUT = Facts("What is left out of an adapter, also of a saved one, or rounded.")
    START = Facts("What the training begins from.")
    # Training.
    TRAINING = Facts("How it is trained.")
    SEED = Facts("Where chance begins; a sweep gives it to its runs.", swept=False)
    # Devices.
    DEVICES = Facts("What computes and how, on which the last digits depend.")
    ADDRESS = Facts("Where these devices are found.", _SAME)
    PACE = Facts("How much is done at a time.", _SAME)
    # Actions.
    TRAIN = Facts("To train.", swept=False, reads=True)
    APPLY = Facts("To apply what is trained to data.", _SAME, swept=False, reads=True)
    EXPORT = Facts("To write what is trained in another form.", _SAME, swept=False)
    # Places.
    PLACE = Facts("Where what a run makes goes.", _SAME, swept=False, repeated=False)
    ADAPTER = Facts("The adapter that is written, or read.", swept=False, repeated=False)
    CACHE = Facts("Where what was read is kept between runs.", _SAME, swept=False, reads=True)
    # The command itself.
    COMMAND = Facts("How this command starts.", _SAME, swept=False, repeated=False)
    REPORT = Facts("Whether what a run has left is also shown as a page.", _SAME, swept=False)
    ONLY_CHECKED = Facts("Whether it ends before anything is done.", _SAME, swept=False)
    SWEEP = Facts("Which runs the command consists of.", swept=False)
    UNUSED = Facts("Nothing; kept for old command lines.", _SAME)

    def __init__(self, facts: Facts) -> None:
        self.meaning, self.identity = facts.meaning, facts.identity
        self.swept, self.reads, self.repeated = facts.swept, facts.reads, facts.repeated
