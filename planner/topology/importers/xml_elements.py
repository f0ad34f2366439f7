"""XML from outside -> plain elements with their lines: no entities, no DTD, depth and count bounded while parsing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from planner.diagnostics import PlannerError
from planner.topology.importers.lines import check_size, refusal

LARGEST: Final = 4 * 2**20
DEEPEST: Final = 64
MOST_ELEMENTS: Final = 50_000
MOST_ATTRIBUTES: Final = 300_000
MOST_REFERENCES: Final = 10_000
LONGEST_TAG: Final = 65_536


@dataclass(slots=True)
class Element:
    """One element: tag, attributes, children in order, line where it starts."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Attribute by name, empty where it is absent."""
        return self.attributes.get(name, "")


class _Target:
    """Builds elements from the parser's events and refuses what grows without end."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.parser: Any = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        line = self.parser.parser.CurrentLineNumber
        if self.count > MOST_ELEMENTS:
            raise refusal("TOO_MANY_ELEMENTS", f"has more than {MOST_ELEMENTS:,} elements", "name a topology of one node", self.file, line)
        if len(self.open) >= DEEPEST:
            raise refusal("NESTED_TOO_DEEP", f"nests more than {DEEPEST} levels", "name a topology of one node", self.file, line)
        element = Element(tag, attributes, line)
        if self.open:
            self.open[-1].children.append(element)
        elif self.root is None:
            self.root = element
        self.open.append(element)

    def end(self, _tag: str) -> None:
        self.open.pop()

    def close(self) -> None:
        """End of the document: nothing is left to do."""


def _check_parts(text: str, file: str) -> None:
    """Refuse by counting signs what would take the parser long: more tags, attributes and references than any node has, tags without end."""
    for sign, most, what in (
        ("<", 3 * MOST_ELEMENTS, f"more than {MOST_ELEMENTS:,} elements"),
        ("=", MOST_ATTRIBUTES, f"more than {MOST_ATTRIBUTES:,} attributes"),
        ("&", MOST_REFERENCES, f"more than {MOST_REFERENCES:,} references"),
    ):
        if text.count(sign) > most:
            raise refusal("TOO_MANY_ELEMENTS", f"has {what}", "name a topology of one node", file)
    start = 0
    for part in text.split("<"):
        if len(part) > LONGEST_TAG:
            message = f"a tag, or text between two, of {len(part):,} characters"
            raise refusal("LINE_TOO_LONG", message, "name a topology of one node", file, text.count("\n", 0, start) + 1)
        start += len(part) + 1


def read_xml(text: str, file: str) -> Element:
    """Root element of an XML document.

    Raises
    ------
    PlannerError
        XML_SYNTAX, XML_FORBIDDEN (a DTD or entities), NESTED_TOO_DEEP, TOO_MANY_ELEMENTS, LINE_TOO_LONG, FILE_TOO_LARGE, EMPTY_FILE.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    check_size(text, file, LARGEST)
    if "<!DOCTYPE" not in text:  # a file that has one is refused for it, whatever else it holds
        _check_parts(text, file)
    target = _Target(file)
    parser = DefusedXMLParser(target=target, forbid_dtd=True)
    target.parser = parser
    try:
        # A declaration must come first, and some dumps begin with an empty line.
        parser.feed(text.strip().encode("utf-8", "replace"))
        parser.close()
    except PlannerError:
        raise
    except DefusedXmlException as error:
        message = f"declares a DTD or entities ({type(error).__name__})"
        raise refusal("XML_FORBIDDEN", message, "remove the DOCTYPE; topology files have none", file) from None
    except ParseError as error:
        raise refusal("XML_SYNTAX", f"is not well-formed XML: {error}", "save the file again", file, error.position[0]) from None
    except (ValueError, LookupError) as error:
        raise refusal("XML_SYNTAX", f"cannot be read as XML: {error}", "save the file as UTF-8", file) from None
    if target.root is None:
        raise refusal("XML_SYNTAX", "holds no element", "save the file again", file)
    return target.root
