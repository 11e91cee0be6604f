"""What a notebook shows of an error of ours: the user's own frames, not those of libraries."""

from __future__ import annotations

import contextlib
import functools
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

_HERE = str(Path(__file__).parent)
_VERBOSE = "Verbose"


def render_traceback(error: BaseException) -> list[str]:
    """Return the traceback that IPython shows, in its own form, without frames of libraries.

    Args:
        error: What was raised.

    Returns:
        Lines; with all frames after `%xmode Verbose`.
    """
    found = sys.modules.get("IPython.core.getipython")
    shell = found.get_ipython() if found is not None else None
    if shell is None:
        return traceback.format_exception(error)
    if shell.InteractiveTB.mode == _VERBOSE:
        return _in_ipythons_form(shell, error)
    with _library_frames_hidden(error):
        return _in_ipythons_form(shell, error)


@contextlib.contextmanager
def users_frames() -> Iterator[None]:
    """Mark whatever this block raises, for a notebook to show as `render_traceback` does; also an interrupt."""
    try:
        yield
    except BaseException as error:
        error._render_traceback_ = functools.partial(render_traceback, error)  # type: ignore[attr-defined]  # IPython's
        raise


def _in_ipythons_form(shell: object, error: BaseException) -> list[str]:
    made = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=0)  # type: ignore[attr-defined]
    return [str(one) for one in made]


@contextlib.contextmanager
def _library_frames_hidden(error: BaseException) -> Iterator[None]:
    """Leave frames of libraries out of the tracebacks of an error and of its causes; afterwards all are back."""
    whole: list[tuple[BaseException, TracebackType | None]] = []
    one: BaseException | None = error
    while one is not None and all(one is not seen for seen, _ in whole):
        whole.append((one, one.__traceback__))
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    try:
        for one, frames in whole:
            one.__traceback__ = _user_frames(frames)
        yield
    finally:
        for one, frames in whole:
            one.__traceback__ = frames


def _user_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package, of installed ones and of the standard library."""
    if frames is None:
        return None
    rest = _user_frames(frames.tb_next)
    if _is_library(frames.tb_frame.f_code.co_filename):
        return rest
    return TracebackType(rest, frames.tb_frame, frames.tb_lasti, frames.tb_lineno)


def _is_library(file: str) -> bool:
    path = Path(file)
    if file.startswith("<"):
        return file.startswith(("<frozen ", "<decorator-gen-"))
    if not path.is_absolute() or {"site-packages", "dist-packages"} & set(path.parts):  # a compiled one is relative
        return True
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return any(path.is_relative_to(one) for one in (_HERE, *standard))
