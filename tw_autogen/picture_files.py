"""`PictureReader`: picture files that code made, as MIME type and content; and which URLs of images hold one."""

from __future__ import annotations

import base64
import errno
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tw_autogen.safe_folder import read_unlinked
from tw_autogen.svg_sanitizer import safe_svg

UNSEEN = "(an image, which this model can't be shown)"
"""Stands for an image in what goes to a model."""
_LARGEST_BYTES, _MAX_PIXELS = 5_000_000, 20_000_000
_MAX_BYTES = 20_000_000
"""How much the pictures of one answer, notebook or page may take together."""
_SVG_COUNTS = 4
"""Times as much as it has bytes: to write 5 MB anew takes seconds."""
_SVG = "image/svg+xml"
_TYPES = {".png": "image/png", ".svg": _SVG, ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
_BEGINS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", _SVG: b""}
_DATA = re.compile(r"data:image/[a-z.+-]{1,40};base64,[A-Za-z0-9+/=\s]*")
_EMBEDDED = re.compile(r"data:image/(?:png|jpeg);base64,[A-Za-z0-9+/=\s]*")
"""AutoGen's client for Gemini takes any other `data:` for the path of a file."""
_CONVERTED = ("GIF", "WEBP")
"""For others Pillow starts programs."""
_SCHEME = re.compile(r"(?!file:|data:)[a-z][a-z0-9+.-]{1,20}:", re.I)


def is_embedded_image(url: str) -> bool:
    """Return whether an image's URL holds the image itself, as PNG or JPEG, for each client of a host."""
    return _EMBEDDED.fullmatch(url) is not None


def safe_image_url(url: str) -> str:
    """Return an image's URL in a form that no client of a host takes for the path of a file.

    Returns:
        An address, or what `is_embedded_image` accepts, as it is; GIF and WebP as a PNG of their first picture, if
        Pillow is there. Empty for anything else.
    """
    if is_embedded_image(url) or _SCHEME.match(url):
        return url
    if not _DATA.fullmatch(url):
        return ""
    try:
        written = io.BytesIO()
        with open_picture(base64.b64decode(url.partition(",")[2]), _CONVERTED) as picture:
            picture.convert("RGBA").save(written, "PNG")
    except Exception:  # noqa: BLE001 - Pillow raises errors of many kinds for a damaged or huge picture
        return ""
    return f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode('ascii')}"


@contextmanager
def open_picture(data: bytes, formats: Sequence[str]) -> Iterator[Any]:
    """Open a picture with Pillow, which decodes it where it is used.

    Args:
        data: Its file's; few bytes can stand for very many pixels.
        formats: Those that it may have.

    Yields:
        Pillow's image.

    Raises:
        ValueError: it has more than 20 million pixels. Pillow raises what it likes for what is none.
    """
    from PIL import Image

    with Image.open(io.BytesIO(data), formats=formats) as picture:
        if picture.width * picture.height > _MAX_PIXELS:
            raise ValueError(f"a picture of {picture.width} x {picture.height} pixels is not decoded")
        yield picture


def is_image_url(url: str) -> bool:
    """Return whether a text is an image's URL, and no path of a file of this machine."""
    return (_DATA.fullmatch(url) or _SCHEME.match(url)) is not None


class PictureReader:
    """Reads the pictures of one answer, notebook or page, as many as may stand in it together: 20 MB, 5 MB of SVG."""

    def __init__(self) -> None:
        self._left = _MAX_BYTES

    def read(self, path: Path) -> tuple[str, bytes]:
        """Read a picture of at most 5 MB; no link is followed.

        Args:
            path: A file whose suffix is .png, .svg, .jpg or .jpeg; code may have written it.

        Returns:
            MIME type and content. An SVG is written anew by `safe_svg`; others are as they are in the file.

        Raises:
            OSError: it can't be read, is a link, is larger, or is no such picture; those before it leave no room.
            UnsafeSvgError: the SVG could run or load something.
        """
        mime = _TYPES[path.suffix.lower()]
        content = read_unlinked(path, limit_bytes=_LARGEST_BYTES)
        if not content.startswith(_BEGINS[mime]):
            raise OSError(errno.EINVAL, f"no {path.suffix[1:].upper()}", str(path))
        counts = len(content) * (_SVG_COUNTS if mime == _SVG else 1)
        if counts > self._left:
            raise OSError(errno.EFBIG, "the pictures are too large together", str(path))
        self._left -= counts
        return mime, safe_svg(content).encode() if mime == _SVG else content

    def read_mime_data(self, path: Path) -> tuple[str, str]:
        """Read a picture as a notebook holds it: MIME type, and an SVG's text or base64. Errors as of `read`."""
        mime, content = self.read(path)
        return mime, content.decode() if mime == _SVG else base64.b64encode(content).decode("ascii")


def is_picture(path: Path) -> bool:
    """Return whether a file's suffix is that of a picture that `PictureReader` reads."""
    return path.suffix.lower() in _TYPES
