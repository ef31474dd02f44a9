"""The text of a segment with inline tags, which are left out or become marks that `translate --keep-markup` knows."""

import re

PAIRED = {"g", "hi", "pc"}
"""Tags around text."""
OPENING, CLOSING = {"bpt", "bx", "sc"}, {"ept", "ex", "ec"}
"""Tags of which two enclose text together."""
SINGLE = {"it", "ph", "ut", "x"}
CODES = {"bpt", "ept", "it", "ph", "ut"}
"""Tags whose content is no text, but a code of the program that the file comes from."""
IDS = ("x", "i", "rid", "startRef", "id")
"""The attributes that tell which tags belong together, in the order in which they count. `x` does across languages."""


class Segment:
    """The text of a segment, as its tags are told one by one.

    Args:
        keeps_tags: whether inline tags become marks: pairs `<g1>` and `</g1>`, others `<x1/>`.
    """

    def __init__(self, keeps_tags: bool):
        self._keeps_tags = keeps_tags
        self._parts: list[str] = []
        self._closing: list[str] = []
        self._hidden = 0
        """how many tags around this place hide text"""
        self._count = 0
        self._numbers: dict[str, str] = {}
        """for each `i` of an opening tag, its number"""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take an inline tag."""
        if self._hidden or name in CODES:
            self._hidden += 1
        if self._hidden > 1:
            return
        closing = ""
        if name in PAIRED | OPENING | CLOSING | SINGLE:
            self._count += name not in CLOSING
            number = next((attributes[key] for key in IDS if key in attributes), str(self._count))
            if "i" in attributes:  # the only attribute of a closing tag
                number = self._numbers.setdefault(attributes["i"], number)
            mark = re.sub(r"[^\w.-]", "", number)
            if name in SINGLE:
                self._mark(f"<x{mark}/>")
            else:
                self._mark(f"</g{mark}>" if name in CLOSING else f"<g{mark}>")
            closing = f"</g{mark}>" if name in PAIRED else ""
        self._closing.append(closing)

    def end(self, name: str) -> None:
        """Take the end of an inline tag."""
        if self._hidden < 2:
            self._mark(self._closing.pop())
        self._hidden -= self._hidden > 0

    def data(self, text: str) -> None:
        """Take text."""
        if not self._hidden:
            self._parts.append(text)

    def text(self) -> str:
        """Return the text."""
        return "".join(self._parts)

    def _mark(self, text: str) -> None:
        if self._keeps_tags:
            self._parts.append(text)
