"""Pictures that code has made are read for the terminal; a hostile one is left out and breaks nothing."""

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import zlib

import pytest
from rich.console import Console

from tw_autogen.cli.terminal_pictures import TerminalPictures, load_png
from tw_autogen.kernel import Artifact

Image = pytest.importorskip("PIL.Image")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width, height):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def png(width, height, *, first=b"", more=b"", rows=bytes(1000), end=b"IEND"):
    return (
        b"\x89PNG\r\n\x1a\n"
        + first
        + header(width, height)
        + more
        + chunk(b"IDAT", zlib.compress(rows)[:900])
        + chunk(end, b"")
    )


def chart(width, height):
    made = io.BytesIO()
    Image.new("RGB", (width, height)).save(made, "PNG")
    return made.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        png(20_000, 20_000),
        png(12_000, 8_000),
        png(5, 5, more=chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100_000_000)))),
        png(40, 40, rows=os.urandom(40 * 121), end=b"\xfaEND"),
        png(20_000, 20_000, first=chunk(b"tEXt", bytes(16) + b"x")),
        png(6_000, 6_000, first=chunk(b"tEXt", bytes(16) + b"x")),
        png(20_000, 20_000, first=header(5, 5)),
        png(6_000, 6_000, first=header(5, 5)),
        chart(1, 200),
        png(500, 500)[:60],
        b"\x89PNG\r\n\x1a\n",
        b"",
    ],
    ids=[
        "bomb",
        "large",
        "large text",
        "unknown chunk",
        "bomb, late header",
        "large, late header",
        "bomb, second header",
        "large, second header",
        "tall",
        "cut",
        "signature",
        "empty",
    ],
)
def test_a_picture_that_is_none_or_too_large_is_an_error_that_is_passed_over(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)

    with pytest.raises((OSError, ValueError), match=r"\w"):
        load_png(tmp_path / "a.png", tmp_path)


def test_a_chart_is_read(tmp_path):
    (tmp_path / "a.png").write_bytes(chart(7, 5))

    assert load_png(tmp_path / "a.png", tmp_path).size == (7, 5)


SHOW_AND_READ = """
import sys
from pathlib import Path
from rich.console import Console
from tw_autogen.cli.terminal_pictures import TerminalPictures
from tw_autogen.kernel import Artifact
here = Path(sys.argv[1])
TerminalPictures(Console(force_terminal=True)).show([Artifact("a", "file", here / "a.png")], here)
print("read", [input(), input()])
"""
TERMINALS = {
    "not known": ({"TERM": "xterm-256color"}, 10, b""),
    "tmux in kitty": ({"TERM": "tmux-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1", "TERM_PROGRAM": "kitty"}, 10, b""),
    "foot": ({"TERM": "foot"}, 10, b"\x1bP"),
    "foot, size not known": ({"TERM": "foot"}, 0, b""),
    "kitty": ({"TERM": "xterm-kitty"}, 10, b"\x1b_G"),
}


@pytest.mark.parametrize(("variables", "pixels", "drawn"), TERMINALS.values(), ids=TERMINALS)
def test_what_is_typed_while_the_first_picture_is_shown_is_read_whole(variables, pixels, drawn, tmp_path):
    pytest.importorskip("textual_image")
    (tmp_path / "a.png").write_bytes(chart(7, 5))
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 80 * pixels, 24 * pixels))
    os.write(ours, b"what is next?\nand then?\n")
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [sys.executable, "-c", SHOW_AND_READ, str(tmp_path)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=inherited | variables):
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # EIO: the process has ended
            while more := os.read(ours, 1 << 16):
                said += more
    os.close(ours)

    assert b"read ['what is next?', 'and then?']" in said
    assert [one for one in (b"\x1b[c", b"\x1b[16t", b"a=q") if one in said] == []
    assert [one for one in (b"\x1bP", b"\x1b_G") if one in said] == ([drawn] if drawn else [])


@pytest.mark.parametrize(("many", "size", "shown"), [(25, (3, 2), 20), (4, (4000, 2500), 3)])
def test_of_many_pictures_the_first_are_shown(tmp_path, monkeypatch, many, size, shown):
    loaded = []
    monkeypatch.setattr(TerminalPictures, "_picture_class", lambda self, image, **how: loaded.append(image.size) or "")
    paths = [tmp_path / f"{at}.png" for at in range(many)]
    for path in paths:
        path.write_bytes(chart(*size))

    console = Console(file=io.StringIO(), force_terminal=True)
    TerminalPictures(console).show([Artifact("a", "file", path) for path in paths], tmp_path)

    assert loaded == [size] * shown
