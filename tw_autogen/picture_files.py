"""`picture_of`: a picture file that code made, as MIME type and content that can stand in a notebook or page."""

from __future__ import annotations

import base64
import errno
from pathlib import Path

from tw_autogen.safe_folder import read_unlinked
from tw_autogen.svg_sanitizer import safe_svg

LARGEST_PICTURE_BYTES = 5_000_000
MOST_PICTURE_BYTES = 20_000_000
"""How much the pictures of one answer, notebook or page may take together."""
_TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
_BEGINS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/svg+xml": b""}


def is_picture(path: Path) -> bool:
    """Return whether a file's suffix is that of a picture that `picture_of` reads."""
    return path.suffix.lower() in _TYPES


def picture_of(path: Path) -> tuple[str, bytes]:
    """Read a picture of at most 5 MB; no link is followed.

    Args:
        path: A file whose suffix is .png, .svg, .jpg or .jpeg; code may have written it.

    Returns:
        MIME type and content. An SVG is written anew by `safe_svg`; others are as they are in the file.

    Raises:
        OSError: it can't be read, is a link, is larger, or is no such picture.
        UnsafeSvgError: the SVG could run or load something.
    """
    mime = _TYPES[path.suffix.lower()]
    content = read_unlinked(path, limit_bytes=LARGEST_PICTURE_BYTES)
    if not content.startswith(_BEGINS[mime]):
        raise OSError(errno.EINVAL, f"no {path.suffix[1:].upper()}", str(path))
    if mime == "image/svg+xml":
        content = safe_svg(content.decode("utf-8", errors="replace")).encode()
    return mime, content


def picture_data(path: Path) -> tuple[str, str]:
    """Return a picture as a notebook holds it: MIME type, and an SVG's text or base64. Errors as of `picture_of`."""
    mime, content = picture_of(path)
    return mime, content.decode() if mime == "image/svg+xml" else base64.b64encode(content).decode("ascii")
