"""`make bench-answers DATA=DIR`: a public benchmark's questions, asked and graded as published."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.benchmarks.answers import Result, Results, Summary, Task, read_dabench, read_math, run_bench, summarize
from tests.benchmarks.answers.results import ABOUT, RESULTS
from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.main import ErrorReportingGroup
from tw_autogen.cli.options import SESSION_OPTIONS, Options, with_options
from tw_autogen.cli.round_summary import short
from tw_autogen.cli.terminal import clean, marks, stderr_console, stdout_console
from tw_autogen.cli.trust_prompt import read_settings_and_warn
from tw_autogen.errors import ConfigError
from tw_autogen.model import ModelSettings, OpenAIModel, resolve_model
from tw_autogen.session import Session, open_session, read_settings

_BENCH_OPTIONS: tuple[click.Option, ...] = (
    click.Option(["--data"], required=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
                 metavar="DIR", help="Where the benchmark's files are."),
    click.Option(["--out", "folder"], type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                 help="Where results are kept, and go on from; default: .tw/bench/<benchmark>-<model>."),
    click.Option(["--jobs"], default=1, show_default=True, type=click.IntRange(min=1), metavar="M",
                 help="Questions that are worked on at once."),
    click.Option(["--limit"], type=click.IntRange(min=1), metavar="N", help="The first N questions only."),
    click.Option(["--level", "levels"], multiple=True, metavar="LEVEL", help="Only this level; repeatable."),
    click.Option(["--json", "as_json"], is_flag=True, help="One JSON object on standard output."),
)  # fmt: skip


@click.group("bench-answers", cls=ErrorReportingGroup)
def command() -> None:
    """Measure a model on a public benchmark whose files you have.

    Each question gets a session of its own. What is known is kept at once: call it again to go on after a stop.
    """


def _verb(name: str, read: Callable[[Path], Sequence[Task]], words: str) -> click.Command:
    @click.pass_context
    def verb(ctx: click.Context, /, **given: Any) -> None:
        own = {key: given.pop(key) for key in ("data", "folder", "jobs", "limit", "levels", "as_json")}
        ctx.exit(_run(name, read(own["data"]), Options(**given), **own))

    made: click.Command = click.command(name, help=words)(verb)
    shared = tuple(option for option in SESSION_OPTIONS if option.name not in ("project", "workspace"))
    return with_options(shared)(with_options(_BENCH_OPTIONS)(made))


_DABENCH = """Ask the questions of InfiAgent-DABench about tables.

DIR holds da-dev-questions.jsonl, da-dev-labels.jsonl and the folder da-dev-tables. An answer is right if every
@name[value] in it equals the label, as text or as a number within 1e-6."""
_MATH = """Ask the problems of MATH.

DIR holds test/<subject>/<number>.json, or JSONL files. An answer is right if what stands in its last box is written
as in the solution, by the rules of the published grader."""
command.add_command(_verb("dabench", read_dabench, _DABENCH))
command.add_command(_verb("math", read_math, _MATH))


def _run(
    name: str,
    tasks: Sequence[Task],
    options: Options,
    *,
    data: Path,
    folder: Path | None,
    jobs: int,
    limit: int | None,
    levels: tuple[str, ...],
    as_json: bool,
) -> Exit:
    tasks = _chosen(tasks, levels)[:limit]
    model = _model(options)
    about = {"benchmark": name, "model": model.name, "data": str(data.resolve())}
    own = Path(".tw", "bench", re.sub(r"[^\w.-]+", "_", f"{name}-{model.name}"))
    if folder is None and not all(
        (own / one).resolve().is_relative_to(Path.cwd().resolve()) for one in ("", RESULTS, ABOUT, "sessions")
    ):
        raise ConfigError(f"{own} is, or holds, a link out of this folder; say where results are kept: --out DIR")
    folder = folder or own
    results = Results(folder, about)
    console, known = stderr_console(color=not options.no_color), sum(results.get(task.id) is not None for task in tasks)
    console.print(f"{len(tasks)} questions, {known} of them known; results in {folder}", soft_wrap=True)
    progress = _Progress(console, len(tasks), known)
    run_bench(tasks, lambda: _open(options, model, folder), results, jobs=jobs, on_result=progress)
    summary = summarize(tasks, results.all())
    if as_json:
        click.echo(json.dumps({"schema_version": 1, **about, **summary.to_dict()}, indent=2, ensure_ascii=False))
    else:
        _print(stdout_console(color=not options.no_color), name, model.name, summary)
    return Exit.done


def _chosen(tasks: Sequence[Task], levels: Sequence[str]) -> Sequence[Task]:
    known = {one for task in tasks for one in task.groups.get("level", ())}
    for level in levels:
        if level not in known:
            raise click.BadParameter(f"{level!r} is no level; known: {', '.join(sorted(known))}", param_hint="--level")
    return [one for one in tasks if not levels or set(one.groups["level"]) & set(levels)]


def _model(options: Options) -> OpenAIModel:
    return resolve_model(read_settings_and_warn(options).read("model", ModelSettings))


def _open(options: Options, model: OpenAIModel, folder: Path) -> Session:
    """Open a session that sees none of the user's folders, so that no label can be read."""
    keywords = {**options.keywords, "session.user_folder": ""}
    settings = read_settings(keywords, project=options.project, trust=options.trust)
    return open_session(
        model,
        roles=("planner", "code_interpreter", *options.roles),
        plugins=options.plugins,
        folder=folder / "sessions",
        settings=settings,
    )


class _Progress:
    """Prints a line for each question."""

    def __init__(self, console: Console, count: int, known: int) -> None:
        self._console = console
        self._count = count
        self._done = known
        self._lock = Lock()

    def __call__(self, result: Result) -> None:
        with self._lock:
            self._done += 1
            signs = marks(self._console)
            sign, style = (signs.done, "green") if result.solved else (signs.failed, "red")
            right = f"{sum(result.right.values())} of {len(result.right)}"
            calls = result.usage.get("calls", 0)
            words = f" {result.id}: {right}, {calls} calls, {result.seconds:.1f} s"
            why = f": {clean(result.error)}" if result.error else ""
            head = Text.assemble(f"{self._done}/{self._count} ", (sign, style), words, (why, "red"))
            self._console.print(head, soft_wrap=True)


def _print(console: Console, name: str, model: str, summary: Summary) -> None:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{name}, {clean(model)}", title_justify="left")
    made.add_column("questions", overflow="fold")
    for column in ("asked", "solved", "accuracy", "by part", "sub-answers"):
        made.add_column(column, justify="right", no_wrap=True)
    rows = [("all", summary.total)]
    for kind, named in summary.groups.items():
        rows += [(f"{kind}: {group}", score) for group, score in named.items()]
    for words, score in rows:
        shares = (score.accuracy, score.accuracy_proportional, score.accuracy_by_sub_answer)
        made.add_row(clean(words), str(score.questions), str(score.solved), *(f"{share:.2%}" for share in shares))
    console.print(made)
    total, mean = summary.total, summary.usage
    if total.answered < total.questions:
        console.print(
            f"{total.questions - total.answered} got no answer and count as wrong; of those answered, "
            f"{total.accuracy_of_answered:.2%} are solved",
            soft_wrap=True,
        )
    if mean:
        reported = mean["prompt_tokens"] or mean["completion_tokens"]
        spent = [short(round(mean[key])) if reported else "-" for key in ("prompt_tokens", "completion_tokens")]
        words = f"a question: {mean['calls']:.1f} calls, {spent[0]} in / {spent[1]} out, {mean['seconds']:.1f} s"
        words += f", ${mean['dollars']:.4f}" if "dollars" in mean else ""
        console.print(words, soft_wrap=True)
    if summary.left:
        console.print(f"{summary.left} questions have no result yet; call it again to go on", soft_wrap=True)


if __name__ == "__main__":
    command()
