"""Files that are read from any place on, local or remote, without a copy on the disk."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from adapter_bert_tf import storage
from adapter_bert_tf.retry import retry_remote

BUFFER = 1 << 20  # Bytes that are asked for at a time.


def open_file(path: str) -> BinaryIO:
    """Opens a file to read its bytes; a remote one with retries."""
    if not storage.is_remote(path):
        return open(path, "rb")
    return io.BufferedReader(_RemoteFile(path), BUFFER)


class _RemoteFile(io.RawIOBase):
    """Bytes of a remote file; each read is one request, at a place of its own."""

    def __init__(self, path: str) -> None:
        self._path, self._offset, self._size = path, 0, storage.stat(path).length

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = start + offset
        return self._offset

    def readinto(self, buffer: Any) -> int:
        content = _read(self._path, self._offset, len(buffer))
        buffer[: len(content)] = content
        self._offset += len(content)
        return len(content)


@retry_remote
def _read(path: str, offset: int, size: int) -> bytes:
    with storage.open_to_read(path) as file:
        file.seek(offset)
        return file.read(size)
