"""Reading lines of text, plain or compressed."""

import codecs
import contextlib
import functools
import gzip
import io
import os
import select
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from tf_transformer.errors import InputError

READ = 1 << 20
"""Bytes read at once."""
LONGEST = 64 << 20
"""The most bytes of a line: a file without line feeds would fill the memory."""
SKIPPED = tuple(bytes([byte]) + b"\x2a\x4d\x18" for byte in range(0x50, 0x60))
"""What a frame begins with that readers of zstd skip, as pzstd writes them."""
PACKED = {".gz": ("gzip", (b"\x1f\x8b",)), ".zst": ("zstd", (b"\x28\xb5\x2f\xfd", *SKIPPED))}
"""The kinds of packed files by their endings, and what they begin with."""
PROBE = "".join(map(chr, range(32, 127))) + r"\u0041"
"""What every encoding that can hold a name in ASCII writes as ASCII does."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, and decompress it if its name ends in .gz or .zst.

    Do nothing but read while it is open: every OSError is reported as one of reading the file.

    Raises:
        InputError: the file cannot be read, or is truncated.
    """
    try:
        with path.open("rb") as file:
            if path.suffix in PACKED:
                _check_packed(path, file)
            if path.suffix == ".gz":
                with gzip.open(file) as unpacked:
                    yield unpacked  # type: ignore[misc]
            elif path.suffix == ".zst":
                yield io.BufferedReader(_Zstandard(file), READ)
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path} is not a complete gzip file: copy or download it again") from None
    except zstandard.ZstdError:
        raise InputError(f"{path} is not a complete zstd file: copy or download it again") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _check_packed(path: Path, file: IO[bytes]) -> None:
    """Raise InputError if a file does not begin as its ending says, unless it is empty."""
    kind, begins = PACKED[path.suffix]
    first = cast(io.BufferedReader, file).peek(4)
    if first and not first.startswith(begins):
        raise InputError(f"{path} is not a {kind} file: rename it without {path.suffix}, or pack it")


def refuse_pipe(path: Path) -> None:
    """Raise InputError if a path is a pipe or a device, which can be read only once."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(
            f"{path} can be read only once, and text is read several times: give a file, or pass a .tsv to "
            "`tf-transformer prepare --data -` on standard input"
        )


class _Zstandard(io.RawIOBase):
    """The content of a .zst file with any number of frames. The library's own reader accepts truncated files."""

    def __init__(self, file: IO[bytes]):
        self.file = file
        self.frame = zstandard.ZstdDecompressor().decompressobj()
        self.is_new = True
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with as much as has been decompressed already."""
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


class Arriving:
    """The lines of a pipe as they arrive, each with its line feed.

    Args:
        file: the file to read, of which nothing has been read yet.
    """

    def __init__(self, file: IO[bytes]):
        self._descriptor = file.fileno()
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._is_open = True

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines, and wait for each."""
        while self._lines or self._is_open:
            if self._lines:
                yield self._lines.popleft()
            else:
                self._read()

    def has_more(self) -> bool:
        """Say whether a line has arrived that was not read yet."""
        while not self._lines and self._is_open and select.select([self._descriptor], [], [], 0)[0]:
            self._read()
        return bool(self._lines)

    def _read(self) -> None:
        read = os.read(self._descriptor, READ)
        *lines, self._rest = (self._rest + read).split(b"\n")
        if len(self._rest) > LONGEST:
            raise _too_long("standard input")
        self._lines.extend(line + b"\n" for line in lines)
        if not read:
            self._is_open = False
            self._lines.extend([self._rest] if self._rest else [])


def line_blocks(path: Path, lines: int) -> Iterator[bytes]:
    """Cut a file into blocks of `lines` lines. The last block may be shorter, and its last line may lack a line feed.

    Raises:
        InputError: as `opened`; or a line is longer than LONGEST.
    """
    waiting, count, before = bytearray(), 0, 0
    with opened(path) as file:
        while read := file.read(READ):
            waiting += read
            count += read.count(b"\n")
            while count >= lines:
                # The block ends within the bytes read last: go back over the surplus lines.
                end = len(waiting)
                for _ in range(count - lines + 1):
                    end = waiting.rfind(b"\n", 0, end)
                yield bytes(waiting[: end + 1])
                waiting = waiting[end + 1 :]
                count -= lines
                before += lines
            if len(waiting) - waiting.rfind(b"\n", -LONGEST - 1) > LONGEST + 1:
                raise _too_long(f"{path}, line {before + count + 1}")
    if waiting:
        yield bytes(waiting)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file, decompressed as `opened` does and decoded as `decoded` does.

    Raises:
        InputError: the file cannot be read, is truncated or is not UTF-8.
    """
    with opened(path) as file:
        return list(decoded(file, os.fspath(path)))


def bounded(lines: Iterable[bytes], name: str, first: int = 1) -> Iterator[bytes]:
    """Yield the lines of a file.

    Args:
        lines: the file, or its lines.
        name: its name, for errors.
        first: the number of the first line.

    Raises:
        InputError: a line is longer than LONGEST.
    """
    if isinstance(lines, io.BufferedIOBase):
        lines = iter(functools.partial(lines.readline, LONGEST + 1), b"")
    for number, line in enumerate(lines, first):
        if len(line) > LONGEST:
            raise _too_long(f"{name}, line {number}")
        yield line


def _too_long(where: str) -> InputError:
    return InputError(f"{where}: a line has at most {LONGEST >> 20} MB. Put each sentence in a line of its own")


def decoded(lines: Iterable[bytes], name: str, first: int = 1, keep_ends: bool = False) -> Iterator[str]:
    """Decode lines as UTF-8; only a line feed, with or without a carriage return, ends a line.

    A byte order mark at the beginning is removed.

    Args:
        lines: the lines, such as a file opened for reading bytes.
        name: the name of the text in errors.
        first: the number of the first line.
        keep_ends: whether lines keep their line feeds and carriage returns.

    Raises:
        InputError: a line is not UTF-8, or longer than LONGEST.
    """
    for number, line in enumerate(bounded(lines, name, first), first):
        if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(f"{name} is UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8")
        if number == 1 and (kind := _utf16(line)):
            raise InputError(f"{name} is {kind} without a mark: convert it, for example with iconv -f {kind} -t UTF-8")
        for ending, (kind, begins) in PACKED.items():
            if number == 1 and line.startswith(begins):
                raise InputError(f"{name} is a {kind} file: unpack it, or let its name end in {ending}")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"{name}, line {number}: not UTF-8; convert the text, such as by iconv -f WINDOWS-1252 -t UTF-8"
            ) from None
        yield text if keep_ends else text.removesuffix("\n").removesuffix("\r")


def encoding_named(name: bytes) -> str:
    """Return the encoding of text that begins with ASCII and calls itself by a name; UTF-8 if that can be none.

    Python knows other encodings by name: of bytes, as base64, of names of hosts, and of strings of its own.
    """
    try:
        found = codecs.lookup(name.decode()).name
        return found if PROBE.encode(found) == PROBE.encode() and PROBE.encode().decode(found) == PROBE else "utf-8"
    except (LookupError, UnicodeError):
        return "utf-8"


def _utf16(line: bytes) -> str | None:
    """Return which UTF-16 a line seems to be: half of the bytes of most letters are NUL; None for other text."""
    for kind, first in (("UTF-16LE", 1), ("UTF-16BE", 0)):
        halves = line[first::2], line[1 - first :: 2].strip(b"\n")
        if len(line) > 3 and halves[0].count(0) > len(halves[0]) // 2 and not halves[1].count(0):
            return kind
    return None
