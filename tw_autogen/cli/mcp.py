"""`tw-autogen mcp`: the agent as an MCP server, for whatever program starts it."""

from __future__ import annotations

from typing import Any

import click

from tw_autogen.cli.mcp_server import AgentServer
from tw_autogen.cli.options import SESSION_OPTIONS, Options, with_options
from tw_autogen.cli.session_opening import open_session_for, readable_folders
from tw_autogen.text_escaping import visible_line


@with_options(SESSION_OPTIONS)
@click.command("mcp")
def command(**shared: Any) -> None:
    """Serve the agent over MCP, on standard input and output, to the program that starts this one.

    Its tools are ask, run_code, variables and artifact. There is one session, with one kernel; both end when the
    client goes. What is said to people goes to standard error.
    """
    options = Options(**shared)

    def say(message: str) -> None:
        click.echo(f"tw-autogen: {visible_line(message)}", err=True)

    because = "the client chooses the current folder"
    with open_session_for(options, [], say, None, elsewhere_because=because) as session:
        AgentServer(session, readable_folders(options)).serve()
