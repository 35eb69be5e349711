"""Where a command writes."""

import dataclasses

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import setting


@dataclasses.dataclass(frozen=True)
class OutputConfig:
    """Where a command writes."""

    output_dir: str | None = setting(
        None, "Folder for everything that the run writes.", Role.PLACE, path="written"
    )
    export_dir: str | None = setting(
        None,
        "Folder of the SavedModel. Default: OUTPUT_DIR/saved_model.",
        Role.PLACE,
        path="written",
        only_with=("do_export", (True,)),
    )
    adapter_dir: str | None = setting(
        None,
        "Folder of the adapter: written in training, otherwise read. Default: OUTPUT_DIR/adapter. "
        "In a folder given here, the adapter of another run is never replaced.",
        Role.ADAPTER,
        path="either",
    )
    report: bool = setting(
        True,
        "Write OUTPUT_DIR/report.html at the end of the run.",
        Role.REPORT,
    )

    @property
    def folder(self) -> str:
        """`output_dir` as a path; empty where it is missing, which `checks` refuses."""
        return self.output_dir or ""
