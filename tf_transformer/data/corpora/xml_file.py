"""Reading XML as a stream, without the entities by which it could exhaust memory or read other files."""

import contextlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, Protocol
from xml.parsers import expat

from tf_transformer.data.corpora.languages import normal_code
from tf_transformer.errors import InputError
from tf_transformer.storage.lines import opened

READ = 1 << 16
"""Bytes read at once, whose pairs wait in memory."""


class Handler(Protocol):
    """What is told of the tags and the text of a file, and collects what it makes of them."""

    found: deque[Any]

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take a tag. Names have no namespace."""

    def data(self, text: str) -> None:
        """Take text between tags."""

    def end(self, name: str) -> None:
        """Take the end of a tag."""


def parsed(path: Path, handler: Handler) -> Iterator[Any]:
    """Yield what a handler collects from a file.

    Raises:
        InputError: it is no XML, and the error names the line; or it declares entities.
    """
    parser = refusing_parser(path)
    parser.StartElementHandler = lambda name, attributes: handler.start(name.rpartition(":")[2], attributes)
    parser.CharacterDataHandler = handler.data
    parser.EndElementHandler = lambda name: handler.end(name.rpartition(":")[2])
    with broken_xml(path), opened(path) as file:
        while block := file.read(READ):
            parser.Parse(block)
            while handler.found:
                yield handler.found.popleft()
        parser.Parse(b"", True)


def refusing_parser(path: Path, encoding: str | None = None, namespaces: str | None = None) -> expat.XMLParserType:
    """Return a parser that refuses entities, as defusedxml does. `namespaces` stands between namespaces and names.

    It reads no external entities and no DTD by itself, but would leave gaps in their place.
    """
    parser = expat.ParserCreate(encoding, namespaces)
    parser.buffer_text = True

    def refuse(*_: Any) -> NoReturn:
        raise InputError(
            f"{path}, line {parser.CurrentLineNumber} has an entity, which could fill the memory or read another "
            "file: write the text in its place"
        )

    parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = parser.SkippedEntityHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    return parser


@contextlib.contextmanager
def broken_xml(path: Path) -> Iterator[None]:
    """Raise InputError for what the parser raises."""
    try:
        yield
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise InputError(f"{path}, line {error.lineno}, column {error.offset + 1}: broken XML, {reason}") from None
    except (LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} has an encoding that is not read: save it as UTF-8 ({error})") from None


def language_of(attributes: dict[str, str]) -> str | None:
    """Return the language of an element, as `normal_code` does."""
    code = attributes.get("xml:lang") or attributes.get("lang")
    return normal_code(code) if code else None
