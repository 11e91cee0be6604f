"""What it costs to choose among many plugins, and how often the right one is found: `make bench`."""

import statistics
import time
from itertools import islice, product

from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings
from tw_autogen.code_interpreter.plugin_selection import select_plugins
from tw_autogen.model import LexicalRanker
from tw_autogen.plugin import Parameter, PluginSpec
from tw_autogen.session import Session
from tw_autogen.testing import FakeKernel, ScriptedModel, codes

from ..plugin.choosing import recall

SITES = [f"site {number}" for number in range(200)]
PARAMETERS = (
    Parameter("table", "DataFrame", True, "one row for each record"),
    Parameter("columns", "list[str]", False, "which columns; all if left out", default=None),
)
RESULT = (Parameter("table", "DataFrame", description="a copy"),)


def many(count):
    """Give so many plugins: those of the committed pool first, then the same for one site after the other."""
    own = recall.pool()
    more = (
        PluginSpec(f"{one.name}_{site.replace(' ', '_')}", f"{one.description[:-1]} for {site}.", tags=one.tags)
        for site, one in product(SITES, own)
    )
    return [
        PluginSpec(one.name, one.description, PARAMETERS, RESULT, tags=one.tags, connect=lambda context: len)
        for one in islice([*own, *more], count)
    ]


def test_time_and_prompt_of_a_choice_among_many(benchmark, tmp_path):
    asked = [query for some in recall.queries().values() for query, _ in some]
    print("\nplugins  first ms  a choice, ms: median    p95    max  (processor: median)  prompt, chars: static  whole")
    for count in (75, 250, 1000):
        specs, ranker = many(count), LexicalRanker()
        started = time.perf_counter()
        select_plugins(specs, "anything", budget_chars=8000, ranker=ranker)
        first = time.perf_counter() - started
        taken = [_timed(specs, query, ranker) for query in asked]
        times, busy = sorted(one for one, _ in taken), statistics.median(one for _, one in taken)
        static, task = _prompt(specs, tmp_path / str(count))
        middle, tail = statistics.median(times), times[int(0.95 * len(times))]
        print(f"{count:7} {1e3 * first:9.1f} {1e3 * middle:21.2f} {1e3 * tail:6.2f} {1e3 * times[-1]:6.2f} "
              f"{1e3 * busy:20.2f} {static:23} {task:6}")  # fmt: skip
    print("recall@3 and @8, lexical:", recall.table())
    run = lambda: select_plugins(specs, asked[0], budget_chars=8000, ranker=ranker)  # noqa: E731
    benchmark.pedantic(run, rounds=50, warmup_rounds=3)


def _timed(specs, query, ranker):
    started, busy = time.perf_counter(), time.thread_time()
    select_plugins(specs, query, budget_chars=8000, ranker=ranker)
    return time.perf_counter() - started, time.thread_time() - busy


def _prompt(specs, folder):
    """Give the length of the static prompt, and of the whole first prompt of a task."""
    model = ScriptedModel([codes("1")])
    role = CodeInterpreter(model, FakeKernel(["1"], folder=folder), plugins=specs, settings=CodeInterpreterSettings())
    with Session([role], folder=folder) as session:
        session.ask("Scale the numeric columns to unit variance")
    lengths = [len(message["content"]) for message in model.calls[0]]
    return lengths[0], sum(lengths)
