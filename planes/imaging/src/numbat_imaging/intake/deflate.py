"""A raw deflate stream as a seekable file (PS3.5 A.5, Deflated Explicit VR Little Endian)."""

from __future__ import annotations

import io
import os
import zlib
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK = 1 << 16


class InflatedFile(io.RawIOBase):
    """Reads what a deflate stream that begins at `start` of `stream` holds.

    Seeking backward starts again; memory stays at one chunk whatever the stream claims.
    Raises zlib.error for a broken stream and EOFError for one that ends before its last block.
    """

    def __init__(self, stream: BinaryIO, *, start: int) -> None:
        self._stream = stream
        self._start = start
        self._restart()

    def _restart(self) -> None:
        self._stream.seek(self._start)
        self._engine = zlib.decompressobj(-zlib.MAX_WBITS)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def _next(self, size: int) -> bytes:
        while size and not self._engine.eof:
            packed = self._engine.unconsumed_tail or self._stream.read(_CHUNK)
            if not packed:
                raise EOFError("the deflate stream ends before its last block")
            data = self._engine.decompress(packed, size)
            if data:
                self._position += len(data)
                return data
        return b""

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence == os.SEEK_END:
            while self._next(_CHUNK):
                pass
            offset += self._position
        if offset < self._position:
            self._restart()
        while self._position < offset and self._next(min(_CHUNK, offset - self._position)):
            pass
        return self._position

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
