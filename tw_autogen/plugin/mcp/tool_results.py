"""What a tool's answer becomes in code: structured content a value, words a text, pictures and files artifacts."""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from tw_autogen.errors import ToolError
from tw_autogen.kernel.guest import PluginContext

_LARGE_CHARS, _MAX_INDENTED_CHARS = 100_000, 1_000_000


def read_result(result: Mapping[str, Any], *, name: str, context: PluginContext, wrapped: bool = False) -> Any:
    """Return what code gets.

    Args:
        result: A `CallToolResult` as it travels: `content`, `structuredContent`, `isError`.
        name: The function's.
        context: Takes the files: pictures, sounds, embedded files, and a copy of what is long.
        wrapped: The structured content is `{"result": …}`, and what stands in it is meant.

    Returns:
        The structured content, else the text with a line for each file that was saved.

    Raises:
        ToolError: the tool says that it failed.
    """
    blocks = [one for one in result.get("content") or () if isinstance(one, Mapping)]
    structured = result.get("structuredContent")
    if result.get("isError"):
        raise ToolError(
            _text_of_blocks(blocks) or (json.dumps(structured) if structured else "the tool failed and gave no reason")
        )
    saved = [line for line in (_save_block(block, name, context) for block in blocks) if line]
    if structured is None:
        text = _text_of_blocks(blocks)
        _keep_long(text, name, "txt", context)
        return "\n".join([text, *saved] if text else saved)
    if wrapped and isinstance(structured, Mapping) and set(structured) == {"result"}:
        structured = structured["result"]
    if isinstance(structured, str):
        _keep_long(structured, name, "txt", context)
    else:
        # Indented only where that can't grow by much: lines of what is nested deep begin with as many blanks.
        text = json.dumps(structured, ensure_ascii=False)
        if len(text) <= _MAX_INDENTED_CHARS:
            text = json.dumps(structured, ensure_ascii=False, indent=1)
        _keep_long(text, name, "json", context)
    return structured


def _text_of_blocks(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return all that is text, block by block; a link as a line."""
    found = []
    for block in blocks:
        inner = block.get("resource")
        if block.get("type") == "text":
            found.append(str(block.get("text", "")))
        elif block.get("type") == "resource_link":
            found.append(f"[{block.get('title') or block.get('name') or 'resource'}: {block.get('uri', '')}]")
        elif isinstance(inner, Mapping) and "text" in inner:
            found.append(str(inner["text"]))
    return "\n".join(found)


def _save_block(block: Mapping[str, Any], name: str, context: PluginContext) -> str:
    """Save a block that is bytes; give a line that names the file, empty for other blocks."""
    inner = block.get("resource")
    holder = inner if isinstance(inner, Mapping) else block
    data = holder.get("blob" if holder is inner else "data")
    if not isinstance(data, str):
        return ""
    mime = str(holder.get("mimeType") or "application/octet-stream").partition(";")[0].strip()
    picture = mime.startswith("image/")
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:  # binascii's, and that of a text that is not ASCII
        context.log("warning", name, f"a block of {mime} is not base64, and was left out")
        return ""
    wish = _file_name(str(holder.get("uri", "")))
    if not PurePosixPath(wish).suffix:
        wish = f"{wish or name}{mimetypes.guess_extension(mime) or ('.png' if picture else '.bin')}"
    try:
        file = context.add_artifact(name, wish, "image" if picture else "file", content, f"{mime} from {name}")
    except ValueError as error:  # too many, or too large
        return f"[{mime} not saved: {error}]"
    return f"[{mime} saved as {file}]"


def _file_name(uri: str) -> str:
    """Return the last part of an address's path; empty for what is no address."""
    try:
        return PurePosixPath(unquote(urlsplit(uri).path)).name
    except ValueError:
        return ""


def _keep_long(text: str, name: str, kind: Any, context: PluginContext) -> None:
    """Keep a copy of what is too long to be shown, so that it can be looked up; code gets all of it nevertheless."""
    if len(text) > _LARGE_CHARS:
        try:
            context.add_artifact(name, f"{name}.{kind}", kind, text, f"what {name} gave, {len(text)} characters")
        except ValueError as error:  # too many, or too large
            context.log("warning", name, f"what it gave is not kept as a file: {error}")
