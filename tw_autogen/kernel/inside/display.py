"""What a cell displays: pictures and documents become files for the user, text goes where prints go."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import json
import os
import sys
import weakref
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from typing import Any

from .context import ArtifactType, PluginContext
from .output import clip

_FORMS: Mapping[str, tuple[ArtifactType, str]] = {
    "image/png": ("chart", ".png"),
    "image/jpeg": ("image", ".jpg"),
    "image/gif": ("image", ".gif"),
    "image/svg+xml": ("svg", ".svg"),
    "text/html": ("html", ".html"),
    "application/json": ("json", ".json"),
}
_WORDS = {"chart": "chart", "image": "image", "svg": "drawing", "html": "page", "json": "data"}


class Display:
    """Takes what IPython would publish to a front end.

    Args:
        shell: IPython's shell; its publisher and display hook are led here.
        ctx: Keeps the files.
        result_chars: Limit of the last expression's text.
    """

    def __init__(self, shell: Any, ctx: PluginContext, result_chars: int) -> None:
        self._ctx = ctx
        self._result_chars = result_chars
        self._figure: Any = ()  # matplotlib's class, once it is imported
        self._seen: set[str] = set()
        self._dropped = 0
        self.result: str | None = None
        shell.display_pub.publish = self.publish
        hook = shell.displayhook
        hook.write_output_prompt = hook.finish_displayhook = hook.start_displayhook = lambda: None
        hook.write_format_data = self._take_result
        hook.update_user_ns = lambda result: None  # no `Out`: it would keep every result alive
        self._saved: weakref.WeakSet[Any] = weakref.WeakSet()
        self._format = shell.display_formatter.format
        shell.display_formatter.format = self._format_unsaved
        AfterImport("matplotlib.figure", self._watch_savefig).install()

    def begin(self) -> None:
        """Start a new cell."""
        self._seen.clear()
        self._saved.clear()
        self._dropped = 0
        self.result = None

    def end(self) -> None:
        """Say what was left out."""
        if self._dropped:
            self._ctx.log("warning", "display", f"{self._dropped} more displayed files were left out")

    def publish(self, data: Mapping[str, Any], metadata: Any = None, **kwargs: Any) -> None:
        """Take display data, in the place of IPython's publisher."""
        text = _text(data)
        if not self._keep(data, text) and text:
            print(text)  # noqa: T201 - this is how displayed text reaches the cell's output

    def _take_result(self, data: Mapping[str, Any], metadata: Any = None) -> None:
        text = _text(data)
        self._keep(data, text)
        self.result = clip(text, self._result_chars)

    def _format_unsaved(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Format a value for display, but for a figure that this cell has saved under a name of its own: it is kept."""
        if isinstance(value, self._figure) and value in self._saved:
            return {}, {}
        return self._format(value, *args, **kwargs)

    def _watch_savefig(self, module: Any) -> None:
        """Take down which figures the code saves to a file."""
        self._figure = module.Figure
        original = module.Figure.savefig

        @functools.wraps(original)
        def savefig(figure: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            done = original(figure, target, *args, **kwargs)
            if isinstance(target, (str, os.PathLike)):
                self._saved.add(figure)
            return done

        module.Figure.savefig = savefig

    def _keep(self, data: Mapping[str, Any], text: str) -> bool:
        """Write the richest form as a file; tell whether the value has one that text doesn't replace."""
        for mime, (kind, suffix) in _FORMS.items():
            # An HTML view counts only where the text says nothing: of a table or a model, the text is what is read.
            if mime not in data or (mime == "text/html" and text and not text.startswith("<")):
                continue
            body = _body(data[mime], mime)
            digest = hashlib.sha256(body).hexdigest()
            if digest not in self._seen:  # a figure that is shown and is the last expression comes twice
                self._seen.add(digest)
                self._write(kind, suffix, body)
            return True
        return False

    def _write(self, kind: ArtifactType, suffix: str, body: bytes) -> None:
        word = _WORDS[kind]
        try:
            self._ctx.add_artifact(word, f"{word}{suffix}", kind, body)
        except ValueError:  # too many already
            self._dropped += 1
        except OSError as error:  # a full disk must not end the cell that has done its work
            self._ctx.log("error", "display", f"a {word} could not be written: {error.strerror}")


class AfterImport:
    """Runs a function once, as soon as a module has been imported; put first into `sys.meta_path`."""

    def __init__(self, name: str, then: Any) -> None:
        self._name = name
        self._then = then

    def install(self) -> None:
        """Wait for the import, or run at once if it happened."""
        if self._name in sys.modules:
            self._then(sys.modules[self._name])
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Lead the import of that one module through here."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            self._then(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign] # of this one loader, not of its class
        return spec


def tune_pandas(pandas: Any) -> None:
    """Let tables be printed wide and long enough that a model sees whole schemas, and as text only."""
    for name, value in {
        "display.max_rows": 100,
        "display.min_rows": 20,
        "display.max_columns": 60,
        "display.max_colwidth": 120,
        "display.width": 200,
        "display.notebook_repr_html": False,
    }.items():
        pandas.set_option(name, value)


def _text(data: Mapping[str, Any]) -> str:
    plain = str(data.get("text/plain", ""))
    if plain.startswith("<") and not {"text/html", "image/png", "image/svg+xml"} & data.keys():
        return str(data.get("text/markdown") or data.get("text/latex") or plain)
    return plain


def _body(value: Any, mime: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if mime.startswith("image/") and mime != "image/svg+xml":
        return base64.b64decode(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace")
