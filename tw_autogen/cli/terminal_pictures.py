"""`TerminalPictures`: charts in the terminal itself, where it can show them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from tw_autogen.kernel import Artifact
from tw_autogen.safe_folder import SafeFolder

_LARGEST_BYTES = 8_000_000
_LARGEST_PIXELS = 20_000_000
_COLUMNS = 80
_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
"""A PNG's signature, length and type of its first chunk, in which its size is."""


class TerminalPictures:
    """Shows PNG files in terminals that have Sixel or kitty's graphics protocol; elsewhere it does nothing.

    It needs the package `textual-image`, which the extra `data` brings. The terminal is asked what it can show when the
    first picture is there.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._images: Any = None

    def show(self, artifacts: Iterable[Artifact], folder: Path) -> None:
        """Show those artifacts that are PNG files.

        Args:
            artifacts: Of one answer.
            folder: The session's, which they lie in; a link of code's making is not followed.
        """
        paths = [one.path for one in artifacts if one.path.suffix.lower() == ".png"]
        if not paths or not self._console.is_terminal or self._console.is_dumb_terminal:
            return
        kind = self._kind()
        if kind is None:
            return
        for path in paths:
            with contextlib.suppress(Exception):  # no picture, or gone: the answer names the file anyway
                self._console.print(
                    kind(read_picture(path, folder), width=min(_COLUMNS, self._console.width), height="auto")
                )

    def _kind(self) -> Any:
        """Return the class of pictures that this terminal shows; None if it shows none."""
        if self._images is None:
            try:
                from textual_image import renderable  # asks the terminal while it is imported
            except ImportError:
                self._images = (None,)
            else:
                good = (renderable.SixelImage, renderable.TGPImage)
                self._images = (renderable.Image if renderable.Image in good else None,)
        return self._images[0]


def read_picture(path: Path, folder: Path) -> Any:
    """Read a picture that code has made.

    Args:
        path: A PNG file below `folder`.
        folder: The folder that code can write to; no link is followed below it.

    Returns:
        Pillow's image, loaded.

    Raises:
        OSError: it is gone, no plain file of the folder, too large, or no PNG.
        ValueError: it lies elsewhere, has too many pixels, or is a broken PNG.
    """
    from PIL import Image

    with SafeFolder(folder) as opened:
        data = opened.read_file(str(path.relative_to(folder)), limit_bytes=_LARGEST_BYTES)
    if not data.startswith(_START):
        raise ValueError(f"{path}: no PNG that begins with its header")
    too_large = f"{path}: too large to be shown"
    size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if _is_large(size):  # Pillow would warn first
        raise ValueError(too_large)
    try:
        image = Image.open(io.BytesIO(data), formats=["PNG"])
        if not _is_large(image.size):  # a second header counts
            image.load()
            return image
    except Exception as error:  # Pillow raises errors of many kinds for a damaged file
        raise ValueError(f"{path}: {error}") from error
    raise ValueError(too_large)


def _is_large(size: tuple[int, int]) -> bool:
    return size[0] * size[1] > _LARGEST_PIXELS
