"""What an agent costs beside model and cell: `make bench`. Never part of the tests: machines differ, and are noisy."""

import itertools
import statistics

import pytest

from tw_autogen.kernel import LocalKernel
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make bench` installs it")
TaskWeaverAgent = pytest.importorskip("tw_autogen.hosts.conversable").TaskWeaverAgent
ROUNDS = 40
CALLS = 500


def in_ms(seconds):
    """Give median, least and most, in milliseconds."""
    return {
        "median_ms": round(1000 * statistics.median(seconds), 3),
        "min_ms": round(1000 * min(seconds), 3),
        "max_ms": round(1000 * max(seconds), 3),
    }


def test_own_time_of_a_round_without_model_and_cell(benchmark, tmp_path):
    model = ScriptedModel([plans("compute 6*7"), codes("6 * 7"), plans("It is 42.", to="User")] * (ROUNDS + 5))
    agent = TaskWeaverAgent(
        model=model,
        llm_config=False,
        workspace=tmp_path,
        kernel=lambda folder: FakeKernel(lambda code: "42", folder=folder),
    )
    user = autogen.ConversableAgent("user", llm_config=False, human_input_mode="NEVER")

    def ask():
        user.initiate_chat(agent, message="what is 6*7?", max_turns=1, silent=True, clear_history=False)

    with agent:
        benchmark.pedantic(ask, rounds=ROUNDS, warmup_rounds=3)


def test_round_trip_of_a_host_call(benchmark, tmp_path):
    code = (
        "import time\ntimes = []\n"
        f"for i in range({CALLS}):\n    t = time.perf_counter(); echo(i); times.append(time.perf_counter() - t)\n"
    )
    with LocalKernel(tmp_path) as kernel:
        kernel.serve("echo", lambda value: value)
        kernel.execute("echo(0)", seconds=60)

        def cell():
            assert kernel.execute(code, seconds=60).ok

        benchmark.pedantic(cell, rounds=5, warmup_rounds=1)
        benchmark.extra_info.update(in_ms(kernel.get("times")))
        print(f"\na host call: {in_ms(kernel.get('times'))} of {CALLS}")


def test_agents_that_are_made_a_second(benchmark, tmp_path):
    numbers = itertools.count()
    made = []

    def make():
        model = ScriptedModel([plans("Hello.", to="User")])
        made.append(TaskWeaverAgent(f"agent{next(numbers)}", model=model, llm_config=False, workspace=tmp_path))

    benchmark.pedantic(make, rounds=200)
    for one in made:
        one.close()
