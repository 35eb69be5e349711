"""Names of the files and folders of an adapter directory."""

CONFIG = "adapter_config.json"  # Without it a folder is not an adapter directory.
WEIGHTS, CARD = "adapter.safetensors", "README.md"
# Folders in it that hold adapter directories: the members of a fusion, the adapters of each task.
MEMBERS, TASKS = "members", "tasks"
INSIDE = {MEMBERS: ("member", "fusion"), TASKS: ("task", "adapter")}
