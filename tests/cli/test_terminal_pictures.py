"""Pictures that code has made are read for the terminal; a hostile one is left out and breaks nothing."""

import io
import os
import struct
import zlib

import pytest

from tw_autogen.cli.terminal_pictures import read_picture

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
        "cut",
        "signature",
        "empty",
    ],
)
def test_a_picture_that_is_none_or_too_large_is_an_error_that_is_passed_over(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)

    with pytest.raises((OSError, ValueError), match=r"\w"):
        read_picture(tmp_path / "a.png", tmp_path)


def test_a_chart_is_read(tmp_path):
    (tmp_path / "a.png").write_bytes(chart(7, 5))

    assert read_picture(tmp_path / "a.png", tmp_path).size == (7, 5)
