"""Reading lines of text, plain or packed."""

import codecs
import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import zstandard

from tf_transformer.errors import InputError

READ = 1 << 20
"""Bytes read at once."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacked where it is called .gz or .zst; nothing else is done while it is open.

    Raises:
        InputError: it cannot be read, or is cut off.
    """
    try:
        with path.open("rb") as file:
            if path.suffix == ".gz":
                with gzip.open(file) as unpacked:
                    yield unpacked  # type: ignore[misc]
            elif path.suffix == ".zst":
                yield io.BufferedReader(_Zstandard(file), READ)
            else:
                yield file
    except (EOFError, zlib.error):
        raise InputError(f"{path} is not a whole gzip file") from None
    except zstandard.ZstdError:
        raise InputError(f"{path} is not a whole zstd file") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


class _Zstandard(io.RawIOBase):
    """The content of a .zst file, of any number of frames; its library's own reader takes a file that is cut off."""

    def __init__(self, file: IO[bytes]):
        self.file = file
        self.frame = zstandard.ZstdDecompressor().decompressobj()
        self.is_new = True
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as what is unpacked already goes."""
        while not self.rest:
            packed = self.frame.unused_data if self.frame.eof else b""
            if self.frame.eof:
                self.frame, self.is_new = zstandard.ZstdDecompressor().decompressobj(), True
            packed = packed or self.file.read(READ)
            if not packed:
                if not self.is_new:
                    raise zstandard.ZstdError("cut off")
                return 0
            self.is_new = False
            self.rest = self.frame.decompress(packed)
        taken = self.rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self.rest = self.rest[len(taken) :]
        return len(taken)


def line_blocks(path: Path, lines: int) -> Iterator[bytes]:
    """Cut a file into blocks of so many lines; the last one has the rest, and its last line may lack its end.

    Raises:
        InputError: as `opened`.
    """
    waiting, count = bytearray(), 0
    with opened(path) as file:
        while read := file.read(READ):
            waiting += read
            count += read.count(b"\n")
            while count >= lines:
                # The end of the block lies in what was read last, before as many lines as are too many.
                end = len(waiting)
                for _ in range(count - lines + 1):
                    end = waiting.rfind(b"\n", 0, end)
                yield bytes(waiting[: end + 1])
                waiting = waiting[end + 1 :]
                count -= lines
    if waiting:
        yield bytes(waiting)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file, unpacked as `opened` does; see `decoded`.

    Raises:
        InputError: it cannot be read, is cut off or is not UTF-8.
    """
    with opened(path) as file:
        return list(decoded(file, os.fspath(path)))


def decoded(lines: Iterable[bytes], name: str, first: int = 1) -> Iterator[str]:
    """Decode lines as UTF-8; only a line feed, with or without a carriage return, ends a line.

    A byte order mark at the beginning is left out.

    Args:
        lines: such as a file opened for reading bytes.
        name: what an error calls them.
        first: the number of the first of them.

    Raises:
        InputError: a line that is not UTF-8.
    """
    for number, line in enumerate(lines, first):
        if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(f"{name} is UTF-16: convert it, such as by iconv -f UTF-16 -t UTF-8")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise InputError(f"{name}, line {number}: not UTF-8") from None
