"""The sections of a configuration: one dataclass each, whose fields are the settings."""
