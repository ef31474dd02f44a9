"""Documents that are packages (.docx, .odt and the like): a ZIP of XML files, some of which have text."""

import contextlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tf_transformer.errors import InputError

PROTECTED = b"\xd0\xcf\x11\xe0"
"""What a document of Office with a password begins with, and one of before 2007."""
LARGE, RATIO = 64 << 20, 200
"""What is larger than this, and so many times as large as it is packed, is taken for a trap."""
MANIFEST = "META-INF/manifest.xml"


@contextlib.contextmanager
def opened_package(raw: bytes, path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a package.

    Args:
        raw: the file.
        path: its name, for errors.

    Raises:
        InputError: it is protected by a password, damaged, or enormous when it is unpacked.
    """
    kind = path.suffix.lower()
    if raw.startswith(PROTECTED):
        raise InputError(
            f"{path} is protected by a password, or of an older kind: save it as {kind} without a password"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as package:
            refuse_trap(package, len(raw), path)
            if MANIFEST in package.namelist() and b"encryption-data" in unpacked(package, package.getinfo(MANIFEST)):
                raise InputError(f"{path} is protected by a password: save it without one")
            yield package
    except InputError:
        raise
    except Exception as error:  # of zipfile or of what reads a part, a dozen kinds
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InputError(f"{path} is damaged, or no {kind}: {reason}") from None


def replaced(package: zipfile.ZipFile, contents: Mapping[str, bytes]) -> bytes:
    """Return a package in which some files have other contents; all others, and the order, stay."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as copy:
        copy.comment = package.comment
        for part in package.infolist():
            info = zipfile.ZipInfo(part.filename, part.date_time)
            info.compress_type, info.external_attr, info.create_system = (
                part.compress_type,
                part.external_attr,
                part.create_system,
            )
            content = contents.get(part.filename)
            copy.writestr(info, unpacked(package, part) if content is None else content)
    return written.getvalue()


def unpacked(package: zipfile.ZipFile, part: zipfile.ZipInfo) -> bytes:
    """Return a file of a package. `ZipFile.read` would unpack all of one that is larger than it says."""
    with package.open(part) as file:
        return file.read(part.file_size + 1)


def refuse_trap(package: zipfile.ZipFile, packed: int, path: Path) -> None:
    """Raise InputError for a package that is enormous when it is unpacked.

    Args:
        package: the package.
        packed: its bytes.
        path: its name.
    """
    parts = package.infolist()
    for part in parts:
        if part.file_size > max(LARGE, RATIO * part.compress_size):
            raise InputError(f"{path}: {part.filename} would become {part.file_size:,} bytes, and is not unpacked")
    total = sum(part.file_size for part in parts)
    if total > max(4 * LARGE, RATIO * packed // 4):
        raise InputError(f"{path} would become {total:,} bytes, and is not unpacked")
