"""Random access to the bytes of a file: mapped, in memory, or inflated on the way."""

from __future__ import annotations

import mmap
import threading
import zlib
from collections.abc import Callable
from typing import Final, Protocol

from ._errors import Malformed

Write = Callable[["bytes | memoryview"], object]

GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_GZIP_FORMAT: Final = 31  # wbits of zlib: 16 for a gzip header, 15 for the largest window
_GZIP_LEVEL: Final = 6
_STEP: Final = 1 << 16


class Source(Protocol):
    """The bytes of a file, from which a reader of its format takes pieces."""

    def read(self, offset: int, count: int) -> memoryview:
        """Return exactly `count` bytes from `offset`; Malformed when the file ends before."""
        ...

    def read_all(self) -> memoryview:
        """Return everything there is."""
        ...

    def drop(self, offset: int, count: int) -> None:
        """Give back the memory of bytes that were read; they can be read again."""
        ...

    def check_end(self, end: int, *, now: bool) -> None:
        """Raise Malformed when the file has not exactly `end` bytes.

        A compressed file knows its length only after inflating all of it: it answers when `now`
        is set, and otherwise checks `end` against its cap.
        """
        ...


class BufferSource:
    """Bytes that are all there: a mapped file or an object in memory."""

    def __init__(self, data: memoryview) -> None:
        """Read from `data`, which stays alive as long as a view that was returned."""
        self._data = data

    def read(self, offset: int, count: int) -> memoryview:
        """Return a view; nothing is copied."""
        piece = self._data[offset : offset + count]
        if len(piece) != count:
            raise cut_short(len(self._data), offset + count)
        return piece

    def read_all(self) -> memoryview:
        """Return the buffer."""
        return self._data

    def drop(self, offset: int, count: int) -> None:
        """Let the system take back whole pages of a mapped file."""
        mapped = self._data.obj
        if not isinstance(mapped, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
            return
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (offset + count) // mmap.PAGESIZE * mmap.PAGESIZE - first
        if size > 0:
            mapped.madvise(mmap.MADV_DONTNEED, first, size)

    def check_end(self, end: int, *, now: bool) -> None:
        """Compare with the length of the buffer."""
        size = len(self._data)
        if size < end:
            raise cut_short(size, end)
        if size > end:
            raise Malformed("bytes behind the end of the record", got=size - end, expected=0)


class InflatingSource:
    """A gzip file, inflated piece by piece; reading in file order inflates it once.

    Counts what comes out, not what the file declares, so a bomb stops at the cap.
    """

    def __init__(self, packed: memoryview, cap: int) -> None:
        """Inflate `packed` to at most `cap` bytes."""
        self._packed = packed
        self._cap = cap
        self._lock = threading.Lock()
        self._rewind()

    def _rewind(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP_FORMAT)
        self._taken = 0
        self._at = 0

    def read(self, offset: int, count: int) -> memoryview:
        """Return a new buffer, grown as bytes come out, never sized in advance."""
        with self._lock:
            if offset < self._at:
                self._rewind()
            self._skip_to(offset)
            result = bytearray()
            while len(result) < count:
                piece = self._next(min(count - len(result), _STEP))
                if not piece:
                    raise cut_short(self._at, offset + count)
                result += piece
            return memoryview(result)

    def drop(self, offset: int, count: int) -> None:
        """Do nothing: what was inflated belongs to whoever read it."""

    def check_end(self, end: int, *, now: bool) -> None:
        """Refuse an `end` above the cap; when `now`, inflate up to it and refuse bytes after it."""
        if end > self._cap:
            raise _too_large(self._cap, end)
        if not now:
            return
        with self._lock:
            if end < self._at:
                self._rewind()
            self._skip_to(end)
            rest = self._next(1)
            behind = len(self._packed) - self._taken + len(self._inflate.unused_data)
            if rest or behind:
                raise Malformed("bytes behind the end of the record", expected="none")

    def read_all(self) -> memoryview:
        """Return everything, and see that the gzip stream ends there."""
        with self._lock:
            self._rewind()
            result = bytearray()
            while piece := self._next(_STEP):
                result += piece
        self.check_end(len(result), now=True)
        return memoryview(result)

    def _skip_to(self, offset: int) -> None:
        while self._at < offset:
            if not self._next(min(offset - self._at, _STEP)):
                raise cut_short(self._at, offset)

    def _next(self, most: int) -> bytes:
        """Inflate up to `most` bytes; empty only at the proper end of the stream."""
        while not self._inflate.eof:
            feed: bytes | memoryview = self._inflate.unconsumed_tail
            if not feed:
                feed = self._packed[self._taken : self._taken + _STEP]
                self._taken += len(feed)
            try:
                piece = self._inflate.decompress(feed, most)
            except zlib.error as error:
                raise Malformed("damaged gzip data", got=str(error)) from None
            if piece:
                self._at += len(piece)
                if self._at > self._cap:
                    raise _too_large(self._cap, self._at)
                return piece
            if not feed and not self._inflate.eof:
                raise Malformed(
                    "the gzip data ends early", got=f"{len(self._packed):,} compressed bytes"
                )
        return b""


class GzipWriter:
    """Compresses what is written; the same input gives the same bytes (no time stamp)."""

    def __init__(self, write: Write, cap: int) -> None:
        """Pass compressed bytes on to `write`; refuse more than `cap` bytes of input."""
        self._write = write
        self._cap = cap
        self._count = 0
        self._deflate = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)

    def write(self, data: bytes | memoryview) -> None:
        """Compress `data`."""
        self._count += len(data)
        if self._count > self._cap:
            raise _too_large(self._cap, self._count)
        self._write(self._deflate.compress(data))

    def close(self) -> None:
        """Write what is still held back."""
        self._write(self._deflate.flush())


def cut_short(got: int, expected: int) -> Malformed:
    """Return the error of a file that ends too early."""
    return Malformed(
        "the file ends early", got=f"{got:,} bytes", expected=f"at least {expected:,} bytes"
    )


def _too_large(cap: int, size: int) -> Malformed:
    return Malformed(
        "more than gzip files may unfold to",
        got=f"{size:,} bytes",
        expected=f"at most {cap:,} bytes",
        hint="a recorder with larger limits=Limits(…), or one without gzip",
    )
