"""The options that commands share, and the settings that they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from tw_autogen.approval import CellApproval
from tw_autogen.cli.user_path import UserPath
from tw_autogen.setting_values import Setting

COMMON_OPTIONS: tuple[click.Option, ...] = (
    click.Option(
        ["--base-url"],
        metavar="URL",
        help="An OpenAI-compatible server, such as http://localhost:11434/v1. Default: OPENAI_BASE_URL or your "
        "settings, else OpenAI.",
    ),
    click.Option(
        ["--model"],
        metavar="NAME",
        help="Model name. Default: OPENAI_MODEL or your settings; else gpt-5.4-mini on OpenAI, elsewhere the "
        "server's only model.",
    ),
    click.Option(
        ["--api-key"], metavar="KEY", help="Default: OPENAI_API_KEY or your settings; a local server needs none."
    ),
    click.Option(
        ["-C", "--project"],
        type=UserPath(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="Your folder, which code can read; settings and plugins lie there, TaskWeaver's too; default: here.",
    ),
    click.Option(
        ["--set", "sets"],
        multiple=True,
        metavar="KEY=VALUE",
        help="Any setting: session.max_posts=20; a list as KEY=a,b or \"KEY=['a', 'b']\".",
    ),
    click.Option(
        ["--trust"],
        is_flag=True,
        help="Trust the settings of the folder (here, or -C) for this call; see docs/trust.md.",
    ),
    click.Option(["--no-color"], is_flag=True, help="Plain text; same as NO_COLOR in the environment."),
)

SESSION_OPTIONS: tuple[click.Option, ...] = (
    *COMMON_OPTIONS,
    click.Option(["--plugins"], multiple=True, metavar="NAME|PATH", help="A plugin that code may call; repeatable."),
    click.Option(
        ["--roles"], multiple=True, metavar="NAME|PATH", help="A role beside the Planner and the CodeInterpreter."
    ),
    click.Option(["--mcp-config"], type=UserPath(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
                 help="JSON with mcpServers; their tools are plugins."),
    click.Option(["--workspace"], type=UserPath(file_okay=False, path_type=Path), metavar="DIR",
                 help="Where sessions keep their folders; default: .tw/sessions."),
    click.Option(["--max-posts"], type=click.IntRange(min=2), metavar="N", help="Most posts a request may take."),
    click.Option(["--timeout"], type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
                 help="Longest time a request may take; then the program ends with 124."),
)  # fmt: skip

_OF_A_MODEL = ("base_url", "model", "api_key", "roles", "max_posts")
RERUN_OPTIONS = tuple(option for option in SESSION_OPTIONS if option.name not in _OF_A_MODEL)
"""Without those that matter only to a model's replies."""

RESUME_OPTIONS: tuple[click.Option, ...] = (
    click.Option(["-c", "--continue", "continues"], is_flag=True,
                 help="Continue the last session here: conversation, files, variables."),
    click.Option(["--resume"], metavar="ID", help="Continue this session; `tw-autogen sessions list` lists them."),
    click.Option(["--rerun"], is_flag=True,
                 help="With -c or --resume: run the cells whose variables were not saved again, without asking."),
)  # fmt: skip

ATTACH_OPTIONS: tuple[click.Option, ...] = (
    click.Option(["--attach"], metavar="FILE|URL#ID",
                 help="Run code in the kernel of your open notebook, in NO sandbox: its connection file, or server and "
                 "kernel id (token: JUPYTER_TOKEN). Each cell is approved by you."),
    click.Option(["--attach-approval"], type=click.Choice(["always", "findings", "never"]), default="always",
                 help="With --attach: which cells you approve; 'never' runs all that the rules for code let through."),
)  # fmt: skip

ASK_OPTIONS: tuple[click.Option, ...] = (
    click.Option(["-p", "--prompt"], metavar="TEXT", help="Answer this one question and end; '-' reads it from stdin."),
    click.Option(["--output-format"], type=click.Choice(["text", "json", "stream-json"]), default="text",
                 show_default=True,
                 help="With one question: the answer alone, one JSON object, or a line of JSON per event."),
    click.Option(["--quiet"], is_flag=True,
                 help="With one question: only the answer, errors, and warnings about settings files and hooks."),
    click.Option(["--out"], type=UserPath(file_okay=False, path_type=Path), metavar="DIR",
                 help="Save all files of an answer there; default: those that the question names, in this folder."),
    *RESUME_OPTIONS,
    *ATTACH_OPTIONS,
    *SESSION_OPTIONS,
)  # fmt: skip


def with_options(options: tuple[click.Option, ...]) -> Callable[[click.Command], click.Command]:
    """Return a decorator that puts options behind a command's own."""

    def add(command: click.Command) -> click.Command:
        command.params.extend(options)
        return command

    return add


@dataclass(frozen=True)
class Options:
    """What the shared options said; None or empty where they were not given."""

    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    project: Path | None = None
    sets: tuple[str, ...] = ()
    trust: bool = False
    no_color: bool = False
    plugins: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    mcp_config: Path | None = None
    workspace: Path | None = None
    out: Path | None = None
    max_posts: int | None = None
    timeout: float | None = None
    continues: bool = False
    resume: str | None = None
    rerun: bool = False
    attach: str | None = None
    attach_approval: CellApproval = "always"
    more: Mapping[str, Setting] = field(default_factory=dict)
    """Settings that a command chooses itself; options and `--set` come before them."""

    @property
    def keywords(self) -> Mapping[str, Any]:
        """The settings that were given, by dotted key, each with the option that gave it.

        Raises:
            click.BadParameter: `--set` without `=`.
        """
        options: dict[str, tuple[str, Any]] = {
            "model.base_url": ("--base-url", self.base_url),
            "model.name": ("--model", self.model),
            "model.api_key": ("--api-key", self.api_key),
            "plugin.mcp_servers": ("--mcp-config", str(self.mcp_config.absolute()) if self.mcp_config else None),
            "session.max_posts": ("--max-posts", self.max_posts),
            "session.round_seconds": ("--timeout", self.timeout),
        }
        given = {key: Setting(value, option) for key, (option, value) in options.items() if value is not None}
        given = {**self.more, **given}
        for one in self.sets:
            key, equals, value = one.partition("=")
            if not equals:
                raise click.BadParameter(f"{one!r} has no '='; write it as session.max_posts=20", param_hint="--set")
            given[key.strip()] = Setting(value, f"--set {key.strip()}")
        return given
