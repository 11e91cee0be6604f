"""The records of an XML file: the elements that repeat, as `pandas.read_xml` reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .number_separators import code_columns

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


@dataclass
class XmlRecords:
    """Elements of one name below one another's parents.

    Args:
        root: The name of the outermost element.
        path: Leads from there to the elements, as `ElementTree` has it.
        names: Of their attributes, themselves where they have a text, and children, as columns.
        rows: Their texts, None where there is none.
        notes: What lies in the elements beyond that.
    """

    root: str
    path: str
    names: list[str]
    rows: list[list[str | None]]
    notes: list[str]

    def call(self, name: str) -> str:
        """Return the call that reads them, for code.

        Args:
            name: What code calls the file.
        """
        space = self.path.partition("{")[2].partition("}")[0]
        path = self.path.replace(f"{{{space}}}", "n:") if space else self.path
        said = f", xpath={path!r}" if path != "./*" else ""
        said += f", namespaces={{'n': {space!r}}}" if space else ""
        codes = code_columns(self.names, [[text or "" for text in row] for row in self.rows], "")
        said += f", dtype={{{', '.join(f'{code!r}: str' for code in codes)}}}" if codes else ""
        return f"pd.read_xml({name!r}{said}{'' if find_spec('lxml') else ', parser=' + repr('etree')})"


def read_records(content: bytes) -> XmlRecords | None:
    """Return the elements that repeat most, whose parents have one path; None: none has attributes or children.

    Args:
        content: Of the file. One with a document type is not parsed: its entities may be without end.

    Raises:
        xml.etree.ElementTree.ParseError: it is no XML, or cut off.
    """
    from xml.etree import ElementTree  # not needed before such a file is described

    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        return None
    root = ElementTree.fromstring(content)
    counts = Counter(path for path, one in _walk_paths(root, ".", 1) if len(one) or one.attrib)
    most = max(counts.values(), default=0)
    path = next((one for one, count in counts.items() if count == most > 1), "")
    if not path or len({part.rpartition("}")[0].partition("{")[2] for part in path.split("/")[1:]}) > 1:
        return None
    elements = list(root.iterfind(path))
    records = [_record(one) for one in elements]
    names = list(dict.fromkeys(name for record in records for name in record))
    rows = [[record.get(name) for name in names] for record in records]
    return XmlRecords(_local_name(root.tag), path, names, rows, _left_out_notes(elements))


def _left_out_notes(elements: Sequence[Element]) -> list[str]:
    """Return notes on what `read_xml` leaves out of elements: what their children hold beside a text."""
    found: dict[str, dict[str, dict[str, None]]] = {"elements": {}, "attributes": {}}
    several: dict[str, None] = {}
    for element in elements:
        children = [child for child in element if isinstance(child.tag, str)]
        for child in children:
            held = [_local_name(one.tag) for one in child if isinstance(one.tag, str)]
            for kind, inner in (("elements", held), ("attributes", [*map(_local_name, child.attrib)])):
                if inner:
                    found[kind].setdefault(_local_name(child.tag), {}).update(dict.fromkeys(inner))
        counts = Counter(_local_name(child.tag) for child in children)
        several |= {name: None for name, count in counts.items() if count > 1}
    notes = []
    for kind, by_child in found.items():
        words = "; ".join(f"{_quoted_names(inner)} in {child!r}" for child, inner in by_child.items())
        notes += [f"{kind} that read_xml leaves out: {words}"] if words else []
    return notes + (
        [f"of several children of one name read_xml keeps the last: {_quoted_names(several)}"] if several else []
    )


def _quoted_names(names: Iterable[str]) -> str:
    first = list(names)
    return ", ".join(map(repr, first[:_MAX_NAMES])) + (", …" if len(first) > _MAX_NAMES else "")


def _walk_paths(parent: Element, path: str, depth: int) -> Iterator[tuple[str, Element]]:
    """Yield each element with its path, down to some depth; the outermost of those that are as many come first."""
    for one in parent:
        if isinstance(one.tag, str):  # else a comment
            yield f"{path}/{one.tag}", one
    for one in parent if depth < _DEEPEST else ():
        yield from _walk_paths(one, f"{path}/{one.tag}", depth + 1)


_DEEPEST, _MAX_NAMES = 6, 5


def _record(element: Element) -> dict[str, str | None]:
    """Return the attributes, the text and the children of an element, the last of one name.

    Its text, white space cut off, has the name of the element; white space alone is none.
    """
    found: dict[str, str | None] = {_local_name(name): value for name, value in element.attrib.items()}
    if text := (element.text or "").strip():
        found[_local_name(element.tag)] = text
    found |= {_local_name(one.tag): (one.text or "").strip() or None for one in element if isinstance(one.tag, str)}
    return found


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]
