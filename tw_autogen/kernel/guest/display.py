"""What a cell displays: pictures and documents become files for the user, text goes where prints go."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import importlib.util
import io
import json
import os
import re
import sys
import weakref
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from typing import Any, BinaryIO, cast

from .artifacts import BoundedFile, TooLarge, TooMany, json_text, preview, write_csv
from .output_capture import clip
from .plugin_context import ArtifactType, PluginContext
from .traceback_text import code_lines

_CHARS = 100
_CUT = "..."
"""Stands in a table's text where pandas has left something out."""
_READ = 20_000
_PNG = b"\x89PNG\r\n\x1a\n"
_INLINE = "module://matplotlib_inline.backend_inline"


def line_about(mime: str, body: bytes) -> str:
    """Return the line; empty where nothing can be said.

    Args:
        mime: The MIME type.
        body: The content; of a text its bytes in UTF-8.

    Example:
        >>> line_about("text/html", b"<html><title>Sales &amp; more</title><p>...")
        'Sales & more'
        >>> line_about("application/json", b'{"a": 1, "b": [2]}')
        'a, b'
    """
    if mime in ("image/png", "image/gif", "image/jpeg"):
        size = _picture_size(body)
        return f"{size[0]} x {size[1]} pixels" if size else ""
    if mime in ("text/html", "image/svg+xml"):
        return _html_title(body[:_READ].decode("utf-8", "replace"))
    if mime.endswith("json"):
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        return _shorten(_ABOUT.get(mime, _describe_json)(value))
    return ""


def _picture_size(body: bytes) -> tuple[int, int] | None:
    if body.startswith(_PNG) and len(body) >= 24:
        return int.from_bytes(body[16:20], "big"), int.from_bytes(body[20:24], "big")
    if body.startswith(b"GIF8") and len(body) >= 10:
        return int.from_bytes(body[6:8], "little"), int.from_bytes(body[8:10], "little")
    place = 2
    while body.startswith(b"\xff\xd8") and place + 9 <= len(body) and body[place] == 0xFF:
        marker = body[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # the frame's own header
            height, width = body[place + 5 : place + 7], body[place + 7 : place + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        place += 2 + int.from_bytes(body[place + 2 : place + 4], "big")
    return None


def _html_title(text: str) -> str:
    match = re.search(r"(?i)<title[^<>]*>([^<]*)</title>", text)
    plain = match[1] if match else re.sub(r"(?is)<(script|style)\b.*?(</\1>|$)|<[^<>]*>", " ", text)
    return _shorten(html.unescape(plain))


def _describe_json(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(map(str, value))
    return f"{len(value)} items" if isinstance(value, list) else str(value)


def _figure(value: Any) -> str:
    """Return what a Plotly figure shows: its title, and the kinds of its traces."""
    if not isinstance(value, Mapping):
        return ""
    kinds = [str(one.get("type", "scatter")) for one in value.get("data") or () if isinstance(one, Mapping)]
    layout = value.get("layout")
    return _title_and_kinds(layout.get("title") if isinstance(layout, Mapping) else None, kinds or ["no traces"])


def _vega_chart(value: Any) -> str:
    """Return what a chart of Vega-Lite shows: its title, and the kinds of its marks."""
    if not isinstance(value, Mapping):
        return ""
    inner = (one for name in ("layer", "hconcat", "vconcat", "concat") for one in value.get(name) or ())
    marks = [one["mark"] for one in (value, *inner) if isinstance(one, Mapping) and one.get("mark")]
    kinds = [str(mark.get("type") if isinstance(mark, Mapping) else mark) for mark in marks]
    return _title_and_kinds(value.get("title"), kinds or ["several charts"])


def _title_and_kinds(title: Any, kinds: list[str]) -> str:
    text = title.get("text") if isinstance(title, Mapping) else title
    return f"{f'{text}: ' if text else ''}{', '.join(dict.fromkeys(kinds))}"


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    return plain[:_CHARS] + ("…" if len(plain) > _CHARS else "")


_PLOTLY, _VEGA = "application/vnd.plotly.v1+json", "application/vnd.vegalite+json"
_ABOUT = {_PLOTLY: _figure, _VEGA: _vega_chart}
_VERSION = re.compile(r"(?<=vegalite)\.v\d+[.+]")
_FORMS: Mapping[str, tuple[ArtifactType, str]] = {
    _PLOTLY: ("json", ".plotly.json"),
    _VEGA: ("json", ".vl.json"),
    "image/png": ("chart", ".png"),
    "image/jpeg": ("image", ".jpg"),
    "image/gif": ("image", ".gif"),
    "image/svg+xml": ("svg", ".svg"),
    "text/html": ("html", ".html"),
    "application/json": ("json", ".json"),
}
_WORDS = {"chart": "chart", "image": "image", "svg": "drawing", "html": "page", "json": "data", "df": "table"}


class Display:
    """Takes what IPython would publish to a front end.

    Args:
        shell: IPython's shell; its publisher and display hook are led here.
    """

    _ctx: PluginContext
    _result_chars: int

    def __init__(self, shell: Any) -> None:
        self._figure: Any = ()  # matplotlib's class, once it is imported
        self._seen: set[str] = set()
        self._dropped = 0
        self._value: Any = None  # what is being formatted
        self._data: Any = None  # what came of it
        self._code = ""
        self.result: str | None = None
        shell.display_pub.publish = self.publish
        hook = shell.displayhook
        hook.write_output_prompt = hook.finish_displayhook = hook.start_displayhook = lambda: None
        hook.write_format_data = self._take_result
        # The original looks into a history, and takes all of a cell to pieces, however long it is.
        hook.quiet = lambda: may_end_with_semicolon(self._code) and hook.semicolon_at_end_of_expression(self._code)
        hook.update_user_ns = lambda result: None  # no `Out`: it would keep every result alive
        self._saved: weakref.WeakSet[Any] = weakref.WeakSet()
        self._blank: weakref.WeakSet[Any] = weakref.WeakSet()
        self._format = shell.display_formatter.format
        shell.display_formatter.format = self._format_unsaved
        self._png = shell.display_formatter.formatters["image/png"]
        AfterImport("matplotlib.figure", self._watch_savefig).install()

    def begin_session(self, ctx: PluginContext, result_chars: int) -> None:
        """Begin a session.

        Args:
            ctx: Keeps the files.
            result_chars: Limit of the last expression's text.
        """
        self._ctx = ctx
        self._result_chars = result_chars

    def begin(self, code: str) -> None:
        """Start a new cell; a semicolon at its end keeps its last value from being shown."""
        self._code = code
        self._seen.clear()
        self._saved.clear()
        self._blank.clear()
        self._dropped = 0
        self.result = None

    def end(self) -> None:
        """Log what was left out."""
        if self._dropped:
            self._ctx.log("warning", "display", f"{self._dropped} more displayed files were left out")

    def publish(self, data: Mapping[str, Any], metadata: Any = None, **kwargs: Any) -> None:
        """Take display data, in the place of IPython's publisher.

        Args:
            data: Representations by MIME type.
            metadata: Of these.
            **kwargs: As IPython passes them.
        """
        text = _plain_text(data)
        self._keep_table(data)
        if not self._keep_richest_form(data, text) and text:
            print(text)  # noqa: T201 - this is how displayed text reaches the cell's output

    def _take_result(self, data: Mapping[str, Any], metadata: Any = None) -> None:
        text = _plain_text(data)
        self._keep_table(data, shown=text)
        self._keep_richest_form(data, text)
        self.result = clip(text, self._result_chars)

    def _format_unsaved(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Format a value for display, but for a figure that this cell has saved under a name of its own: it is kept."""
        if isinstance(value, self._figure) and value in self._saved:
            return {}, {}
        made = self._format(value, *args, **kwargs)
        self._value, self._data = value, made[0]
        if isinstance(value, self._figure):
            self._look_at(value, "a chart")
        return made

    def _watch_savefig(self, module: Any) -> None:
        """Take down which figures the code saves to a file; those that pyplot has not made are shown as others are."""
        self._figure = module.Figure
        self._png.for_type(module.Figure, _png_of)  # until the backend sets its own
        original = module.Figure.savefig

        @functools.wraps(original)
        def savefig(figure: Any, *args: Any, **kwargs: Any) -> Any:
            done = original(figure, *args, **kwargs)
            name = args[0] if args else kwargs.get("fname")
            if isinstance(name, (str, os.PathLike)):
                self._saved.add(figure)
                self._look_at(figure, os.path.basename(name))
            return done

        module.Figure.savefig = savefig

    def _look_at(self, figure: Any, name: Any) -> None:
        """Log once that nothing is drawn in a figure."""
        try:
            blank = figure not in self._blank and _is_blank(figure)
        except Exception:  # noqa: BLE001 - axes and what is in them may be of other libraries
            return
        if blank:
            self._blank.add(figure)
            self._ctx.log("warning", "display", f"nothing is drawn in {name}: its axes hold no data")

    def _keep_richest_form(self, data: Mapping[str, Any], text: str) -> bool:
        """Write the richest form as a file; tell whether the value has one that text doesn't replace."""
        data = {_VERSION.sub("+", mime): one for mime, one in data.items()}
        for mime, (kind, suffix) in _FORMS.items():
            # An HTML view counts only where the text says nothing: of a table or a model, the text is what is read.
            if mime not in data or (mime == "text/html" and text and not text.startswith("<")):
                continue
            body = _to_bytes(data[mime], mime)
            digest = hashlib.sha256(body).hexdigest()
            if digest not in self._seen:  # a figure that is shown and is the last expression comes twice
                self._seen.add(digest)
                word = "figure" if mime in _ABOUT else _WORDS[kind]
                self._write(kind, word, f"{word}{suffix}", body, line_about(mime, body))
            return True
        return False

    def _keep_table(self, data: Mapping[str, Any], *, shown: str = _CUT) -> None:
        """Write a DataFrame as CSV: one that is displayed, and one that is the last value if its text is not all of it.

        Args:
            data: What is published; the table itself is known from its formatting.
            shown: Its text, where it is the last value.
        """
        value, made = self._value, self._data
        self._value = self._data = None
        if made is not data or not _is_table(value) or (_CUT not in shown and len(shown) <= self._result_chars):
            return
        try:
            text = io.BytesIO()
            write_csv(value, cast(BinaryIO, BoundedFile(text, self._ctx.max_artifact_bytes)), index=_has_index(value))
            about = preview("df", value)
        except TooLarge as error:
            self._ctx.log("warning", "display", f"a table was left out: {error}")
        except Exception as error:  # noqa: BLE001 - what stands in a table is foreign code
            self._ctx.log("warning", "display", f"a table could not be written: {type(error).__name__}")
        else:
            self._write("df", "table", "table.csv", text.getvalue(), about)

    def _write(self, kind: ArtifactType, word: str, name: str, body: bytes, about: str) -> None:
        try:
            self._ctx.add_artifact(word, name, kind, body, about)
        except TooMany:
            self._dropped += 1
        except TooLarge as error:
            self._ctx.log("warning", "display", f"a {word} was left out: {error}")
        except OSError as error:  # a full disk must not end the cell that has done its work
            self._ctx.log("error", "display", f"a {word} could not be written: {error.strerror}")


class AfterImport:
    """Runs a function once, as soon as a module has been imported; put first into `sys.meta_path`."""

    def __init__(self, name: str, then: Any) -> None:
        self._name = name
        self._then = then
        self._finding = False

    def install(self) -> None:
        """Wait for the import, or run at once if it happened."""
        if self._name in sys.modules:
            self._then(sys.modules[self._name])
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Lead the import of that one module through here.

        Args:
            name: The module's full name.
            path: The package's path.
            target: As `importlib` passes it.
        """
        if name != self._name or self._finding:
            return None
        self._finding = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding = False
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign] # of this one loader, not of its class
        return spec


def may_end_with_semicolon(code: str) -> bool:
    r"""Return whether a semicolon stands in the last line of code, or in comments behind it.

    Example:
        >>> [may_end_with_semicolon(code) for code in ("1; 2", "1;  # no more", "1; 2 + \\\n3")]
        [True, True, False]
    """
    for line in reversed(code_lines(code)):
        if ";" in line:
            return True
        if (text := line.strip()) and not text.startswith("#"):
            return False
    return False


def tune_pandas(pandas: Any) -> None:
    """Set pandas' options so that tables show whole schemas to a model, and as text only."""
    for name, value in {
        "display.max_rows": 100,
        "display.min_rows": 20,
        "display.max_columns": 60,
        "display.max_colwidth": 120,
        "display.width": 200,
        "display.notebook_repr_html": False,
    }.items():
        pandas.set_option(name, value)


def tune_pyplot(pyplot: Any) -> None:
    """Keep the backend that shows figures where code asks for Agg, which is for a machine without a screen.

    Args:
        pyplot: The module `matplotlib.pyplot`, whose `switch_backend` `matplotlib.use` calls, too.
    """
    switch = pyplot.switch_backend

    @functools.wraps(switch)
    def switch_backend(newbackend: Any) -> None:
        if isinstance(newbackend, str) and newbackend.lower() == "agg":
            newbackend = pyplot.rcParams["backend"] = _INLINE  # read while the backend is imported
        switch(newbackend)

    pyplot.switch_backend = switch_backend


def tune_altair(altair: Any) -> None:
    """Make Altair show a chart as its specification, which is kept, and not as a page that wants the network."""
    altair.renderers.register("kept", lambda chart, **_: {_VEGA: chart})
    altair.renderers.enable("kept")


def tune_plotly(module: Any) -> None:
    """Make Plotly show a figure as its specification, which is kept; its own renderers want nbformat for that.

    Args:
        module: The module `plotly.io._renderers`.
    """

    def render(self: Any, figure: Any) -> None:
        module.ipython_display.display(module.plotly_renderer.to_mimebundle(figure), raw=True)

    module.renderers["kept"] = type("KeptRenderer", (module.ExternalRenderer,), {"render": render})()
    module.renderers.default = "kept"


def tune_bokeh(io: Any) -> None:
    """Make Bokeh say that nothing is shown of a figure: it would be a page without its script.

    Args:
        io: The module `bokeh.io`.
    """

    def say(*_: Any, **__: Any) -> None:
        print(  # noqa: T201 - the cell's own stream
            "This figure of Bokeh is not kept: write it as a page, with "
            "`bokeh.io.save(figure, 'figure.html', title='…', resources='inline')`."
        )

    io.install_notebook_hook("jupyter", lambda *_, **__: None, say, say, overwrite=True)


def _png_of(figure: Any) -> Any:
    from IPython.core.pylabtools import print_figure  # not needed before a figure is shown

    return print_figure(figure, fmt="png", base64=True)  # type: ignore[no-untyped-call]


def _is_blank(figure: Any) -> bool:
    """Return whether all axes of a figure that has been drawn hold no finite data, pictures, tables or words."""
    isfinite = sys.modules["numpy"].isfinite
    if any((figure.images, figure.lines, figure.patches, figure.artists)) or not figure.axes:
        return False
    for axes in figure.axes:
        if any((axes.patches, axes.images, axes.tables, axes.texts, axes.artists)):
            return False
        if any(isfinite(line.get_xydata()).all(axis=1).any() for line in axes.lines):
            return False
        if any(
            len(collection.get_paths() or ()) and isfinite(collection.get_offsets()).any()
            for collection in axes.collections
        ):
            return False
    return True


def _is_table(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, getattr(pandas, "DataFrame", ()))


def _has_index(frame: Any) -> bool:
    """Return whether a table's index is more than the numbers of its rows."""
    return type(frame.index).__name__ != "RangeIndex" or frame.index.name is not None


def _plain_text(data: Mapping[str, Any]) -> str:
    plain = str(data.get("text/plain", ""))
    if plain.startswith("<") and not {"text/html", "image/png", "image/svg+xml"} & data.keys():
        return str(data.get("text/markdown") or data.get("text/latex") or plain)
    return plain


def _to_bytes(value: Any, mime: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if mime.startswith("image/") and mime != "image/svg+xml":
        return base64.b64decode(value)
    text = value if isinstance(value, str) else json_text(value)
    return text.encode("utf-8", "replace")
