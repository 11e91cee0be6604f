"""What is said of documents, PDF and Word: their size, the text of the latter, and the call that reads them."""

from __future__ import annotations

import itertools
import re
import zipfile
import zlib
from collections.abc import Collection
from importlib.util import find_spec

from .plural import pluralize
from .text_outline import text_lines

_PDF_BYTES, _PIECE, _MAX_PIECES = 20_000_000, 1_000_000, 100
_PAGE, _PACKED = re.compile(rb"/Type\s{0,5}/Page(?!\w)"), re.compile(rb"/ObjStm[^<>]{0,200}>>\s{0,5}stream\r?\n")
_PDF_READERS = (
    ("pypdf", "pypdf.PdfReader({}).pages[0].extract_text()"),
    ("pdfplumber", "pdfplumber.open({}).pages[0].extract_text()"),
    ("pymupdf", "pymupdf.open({})[0].get_text()"),
    ("pdfminer", "pdfminer.high_level.extract_text({})"),
)
_TEXT_BYTES = 10_000_000


def pdf_lines(path: str, name: str) -> tuple[str, list[str]]:
    """Return a headline and lines about a PDF.

    Args:
        path: Of the file.
        name: What code calls it.

    Raises:
        ValueError: it is none.
    """
    with open(path, "rb") as file:
        content = file.read(_PDF_BYTES)
    if b"%PDF-" not in content[:1024]:
        raise ValueError("it does not begin as a PDF does")
    packed = (
        content[match.end() : match.end() + _PIECE]
        for match in itertools.islice(_PACKED.finditer(content), _MAX_PIECES)
    )
    count = sum(len(_PAGE.findall(one)) for one in (content, *map(_decompress_start, packed)))
    size = f", {pluralize(count, 'page')}" if count and len(content) < _PDF_BYTES else ""
    there = next((call for module, call in _PDF_READERS if find_spec(module)), "")
    reads = f"to be read with {there.format(repr(name))}" if there else "no library that reads its text is installed"
    encrypted = ", encrypted" if b"/Encrypt" in content else ""
    return f"PDF{size}{encrypted}", [reads if there else f"{reads} (pypdf, pdfplumber, pymupdf)"]


def _decompress_start(packed: bytes) -> bytes:
    """Return what a compressed part of a PDF begins with; nothing if it is encrypted or torn."""
    try:
        return zlib.decompressobj().decompress(packed, _PIECE)
    except zlib.error:
        return b""


def word_lines(path: str, name: str, terms: Collection[str]) -> tuple[str, list[str]]:
    """Return a headline and lines about a Word document.

    Args:
        path: Of the file.
        name: What code calls it.
        terms: Names of columns of other files.

    Raises:
        zipfile.BadZipFile: it is none.
        KeyError: it is another one of Office's.
    """
    from xml.etree import ElementTree  # not needed before such a file is described

    with zipfile.ZipFile(path) as archive, archive.open("word/document.xml") as file:
        content = file.read(_TEXT_BYTES + 1)
    if len(content) > _TEXT_BYTES or b"<!DOCTYPE" in content:
        return "Word document, too large to be looked through", []
    root = ElementTree.fromstring(content)
    space = root.tag.partition("}")[0] + "}"
    paragraphs = [
        "".join("\t" if one.tag == f"{space}tab" else one.text or "" for one in paragraph.iter() if one.tag in texts)
        for texts in [(f"{space}t", f"{space}tab")]
        for paragraph in root.iter(f"{space}p")
    ]
    tables = sum(1 for _ in root.iter(f"{space}tbl"))
    headline, lines = text_lines("\n".join(paragraphs), terms=terms)
    reads = "zipfile and xml.etree.ElementTree read its word/document.xml; python-docx is not installed"
    if find_spec("docx"):
        reads = f"to be read with docx.Document({name!r})"
    said = f", {pluralize(tables, 'table')}, whose cells are lines here" if tables else ""
    return f"Word document: {headline}{said}", [*(f"| {line}" for line in lines), reads]
