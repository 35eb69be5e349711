"""Scoring on Apache Beam: `Score` for pipelines, and the job behind `adapter-bert score`."""

from typing import TYPE_CHECKING, Any

from adapter_bert_tf.errors import Unavailable

if TYPE_CHECKING:
    from adapter_bert_tf.beam.transform import Score as Score

__all__ = ["Score"]


def require_beam() -> None:
    """Raises `InputError` if Apache Beam is not installed."""
    try:
        import apache_beam  # noqa: F401
    except ImportError as error:
        raise Unavailable(
            'Apache Beam is not installed: pip install "adapter_bert_tf[beam]".'
        ) from error


def __getattr__(name: str) -> Any:
    """Loads Beam, which takes seconds, when `Score` is first used."""
    if name != "Score":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_beam()
    from adapter_bert_tf.beam.transform import Score

    return Score
