"""What came through standard input: data for a question, or the question itself."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import select
import stat
import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

_SILENT_SECONDS = 3.0
_DELIMITERS = {",": ".csv", ";": ".csv", "\t": ".tsv"}
_SAMPLE_LINES = 20


def read_question() -> str:
    """Read a question from standard input.

    Raises:
        click.UsageError: there was none.
    """
    text = sys.stdin.buffer.read().decode("utf-8", errors="replace").strip()
    return checked_question(text)


def checked_question(text: str) -> str:
    """Return a question as it is.

    Raises:
        click.UsageError: there is nothing in it.
    """
    if not text.strip():
        raise click.UsageError('there is no question: give one with -p "…", or start without -p in a terminal to chat')
    return text


def read_data(folder: Path, *, wait: bool) -> Path | None:
    """Read data from standard input into a file that is named for what it looks like.

    Args:
        folder: Where to put `stdin.csv`, `stdin.tsv`, `stdin.json`, `stdin.jsonl` or `stdin.txt`.
        wait: The user said that data comes (`-`). Otherwise only a file or a pipe is read, and a pipe that stays silent
            for three seconds is left alone: many programs start others with a pipe that nobody will ever write to.

    Returns:
        The file, or None if nothing came.

    Raises:
        click.UsageError: nothing came, and the user said that data comes.
    """
    stream = sys.stdin.buffer
    if not wait and not _brings_data(stream):
        return None
    data = stream.read()
    if not data.strip():
        if wait:
            raise click.UsageError("'-' is standard input, and nothing came through it")
        return None
    path = folder / f"stdin{_guess_suffix(data)}"
    path.write_bytes(data)
    return path


def _brings_data(stream: BinaryIO) -> bool:
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:  # a stream in memory: there is nothing to wait for
        return True
    kind = os.fstat(number).st_mode
    if stat.S_ISREG(kind):
        return True
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) or os.name == "nt":  # Windows can't wait for a pipe
        return False
    if select.select([number], [], [], _SILENT_SECONDS)[0]:
        return True
    click.echo("tw-autogen: standard input is silent and left alone; write - as a file to wait for it", err=True)
    return False


def _guess_suffix(data: bytes) -> str:
    if suffix := _json_suffix(data.removeprefix(codecs.BOM_UTF8).strip()):
        return suffix
    if b"\0" in data:
        return ".txt"
    lines = data[:100_000].decode("utf-8", errors="replace").splitlines()[:_SAMPLE_LINES]
    lines = [line for line in lines if line.strip()]
    for delimiter, suffix in _DELIMITERS.items():
        widths = {len(row) for row in csv.reader(lines, delimiter=delimiter)}
        if len(lines) > 1 and len(widths) == 1 and widths.pop() > 1:
            return suffix
    return ".txt"


def _json_suffix(data: bytes) -> str:
    """Return the suffix of JSON lines or of JSON; empty: it is neither."""
    if not data.startswith((b"{", b"[")):
        return ""
    first = data.split(b"\n", _SAMPLE_LINES)[:_SAMPLE_LINES]
    if len(first) > 1 and all(isinstance(_json_value(line), dict | list) for line in first if line.strip()):
        return ".jsonl"
    return ".json" if isinstance(_json_value(data), dict | list) else ""


def _json_value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
