"""Substitutes for programs, first in PATH."""

import os


def program(folder, name, text, monkeypatch):
    """Puts a program first in PATH that prints a text; a text of None makes it fail."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "exit 9" if text is None else f"cat <<'END'\n{text}\nEND"
    (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
