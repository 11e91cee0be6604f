"""Tools of the host as plugins."""

from __future__ import annotations

import inspect
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool

from tw_autogen.plugin import callable_plugin


def tool_plugin(wanted: Any) -> Any:
    """Return what is wanted as a plugin; a tool of the host (`FunctionTool`, any `BaseTool`) as a function of its name.

    Args:
        wanted: One thing of `plugins=`. What is no tool comes back as it is.

    Returns:
        A plugin that runs in this process; the tool checks arguments, too.

    Raises:
        ConfigError: its name is no name of a function.
    """
    if not isinstance(wanted, BaseTool):
        return wanted
    fields = sorted(wanted.args_type().model_fields.items(), key=lambda item: not item[1].is_required())
    signature = inspect.Signature(
        [
            inspect.Parameter(
                one.alias or name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if one.is_required() else one.get_default(call_default_factory=True),
                annotation=one.annotation,
            )
            for name, one in fields
        ],
        return_annotation=wanted.return_type(),
    )

    async def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        return await wanted.run_json(given, CancellationToken())

    about = [f"    {one.alias or name}: {one.description}" for name, one in fields if one.description]
    call.__doc__ = "\n".join([f"{wanted.description}\n", "Args:", *about]) if about else wanted.description
    call.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
    return callable_plugin(call, name=wanted.name, description=wanted.description)
