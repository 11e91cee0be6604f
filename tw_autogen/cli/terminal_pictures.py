"""`TerminalPictures`: charts in the terminal itself, where it can show them."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import struct
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from tw_autogen.kernel import Artifact
from tw_autogen.safe_folder import SafeFolder

if sys.platform != "win32":
    import fcntl
    import termios

_LARGEST_BYTES = 8_000_000
_LARGEST_PIXELS = 20_000_000
_MAX_PICTURES, _PIXELS_TOGETHER = 20, 30_000_000
"""Of one answer; each takes time to be shown."""
_TALLEST = 10
"""Times its width: it is shown as wide as the terminal is."""
_COLUMNS = 80
_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
"""A PNG's signature, length and type of its first chunk, in which its size is."""


_KITTY = frozenset({"xterm-kitty", "kitty", "xterm-ghostty", "ghostty"})
_SIXEL = frozenset({"foot", "foot-extra", "mlterm", "contour", "wezterm", "iterm.app", "mintty", "konsole"})


class TerminalPictures:
    """Shows PNG files in terminals that have Sixel or kitty's graphics protocol; elsewhere it does nothing.

    It needs the package `textual-image`, which the extra `data` brings. What the terminal can show is taken from the
    environment and its size in pixels; it is never asked, since its reply would be mixed with what the user types.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, artifacts: Iterable[Artifact], folder: Path) -> None:
        """Show those artifacts that are PNG files, up to 20 of them and 30 million pixels together.

        Args:
            artifacts: Of one answer.
            folder: The session's, which they lie in; a link of code's making is not followed.
        """
        paths = [artifact.path for artifact in artifacts if artifact.path.suffix.lower() == ".png"]
        if not paths or not self._console.is_terminal or self._console.is_dumb_terminal or self._picture_class is None:
            return
        left = _PIXELS_TOGETHER
        for path in paths[:_MAX_PICTURES]:
            with contextlib.suppress(Exception):  # no picture, or gone: the answer names the file anyway
                image = load_png(path, folder)
                left -= image.width * image.height
                if left < 0:
                    return
                self._console.print(self._picture_class(image, width=min(_COLUMNS, self._console.width), height="auto"))

    @functools.cached_property
    def _picture_class(self) -> Any:
        """The class of pictures that this terminal shows; None if it shows none."""
        protocol = picture_protocol(os.environ) if _has_pixels() else ""
        return _image_class(protocol) if protocol else None


def picture_protocol(environ: Mapping[str, str]) -> str:
    """Return `kitty` or `sixel`, as a terminal's variables name its program; empty if it is not known to have either.

    Args:
        environ: `TERM`, `TERM_PROGRAM`, `KONSOLE_VERSION`; in `tmux` and `screen` (`TMUX`, `STY`) there is neither.

    Example:
        >>> picture_protocol({"TERM": "xterm-kitty"}), picture_protocol({"TERM": "xterm-256color"})
        ('kitty', '')
    """
    term = environ.get("TERM", "").lower()
    if environ.get("TMUX") or environ.get("STY") or term.startswith(("tmux", "screen")):
        return ""
    names = {term, environ.get("TERM_PROGRAM", "").lower(), "konsole" if environ.get("KONSOLE_VERSION") else ""}
    if names & _KITTY:
        return "kitty"
    return "sixel" if names & _SIXEL else ""


def _has_pixels() -> bool:
    """Return whether the system knows how large a cell of the terminal is: textual-image would ask the terminal."""
    if sys.platform == "win32" or sys.__stdout__ is None:
        return False
    try:
        size: bytes = fcntl.ioctl(sys.__stdout__.fileno(), termios.TIOCGWINSZ, bytes(8))
    except (OSError, ValueError):
        return False
    rows, columns, width, height = struct.unpack("HHHH", size)
    return bool(0 < columns <= width and 0 < rows <= height)


def _image_class(protocol: str) -> Any:
    """Return textual-image's class for a protocol; None if the package is missing."""
    kept, sys.__stdout__ = sys.__stdout__, None  # type: ignore[misc]  # else its import asks the terminal
    try:
        from textual_image import renderable
    except ImportError:
        return None
    finally:
        sys.__stdout__ = kept  # type: ignore[misc]  # as above
    return renderable.TGPImage if protocol == "kitty" else renderable.SixelImage


def load_png(path: Path, folder: Path) -> Any:
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
    return size[0] * size[1] > _LARGEST_PIXELS or size[1] > _TALLEST * size[0]
