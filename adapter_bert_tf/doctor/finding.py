"""The outcome of a check."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of a check."""

    name: str
    result: str
    fix: str = ""  # Empty if all is well.
    needed: bool = False  # Whether nothing works without it.
