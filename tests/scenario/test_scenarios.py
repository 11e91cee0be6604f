"""The scenarios of this repository, replayed: recorded replies, everything else real."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tw_autogen.cli.scenario_costs import costs_table, put_table
from tw_autogen.model import Recording, Usage
from tw_autogen.scenario import read_scenario, replay_scenario, run_scenario
from tw_autogen.scenario.scenario import find_scenarios
from tw_autogen.session import Answer, read_journal, rounds_of
from tw_autogen.testing import ScriptedModel, plans

ROOT = Path(__file__).parents[2]
SCENARIOS = find_scenarios(ROOT / "scenarios")
RECORDED = [scenario for scenario in SCENARIOS if scenario.replies.exists()]
EACH = pytest.mark.parametrize("scenario", RECORDED, ids=lambda one: one.name)
LARGEST_BYTES = 50_000


@pytest.fixture(autouse=True)
def can_run_here(request):
    scenario = request.node.callspec.params.get("scenario") if hasattr(request.node, "callspec") else None
    if scenario and scenario.hindrance:
        pytest.skip(f"{scenario.name} {scenario.hindrance}")


def test_the_scenarios_are_there():
    assert {one.name for one in RECORDED} >= {"anomaly_detection", "auto_correction", "file_chain", "stateful"}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_a_scenario_says_what_it_shows_and_its_data_are_small(scenario):
    assert scenario.about
    assert not [name for name in scenario.files if (scenario.folder / name).stat().st_size > LARGEST_BYTES]


def sources(workspace):
    """Where the numbers of all answers of a session come from."""
    (journal,) = workspace.glob("*/events.jsonl")
    rounds = rounds_of(read_journal(journal))
    answers = [Answer.of(one, Usage(), earlier=rounds[:at]) for at, one in enumerate(rounds)]
    return [source for answer in answers for source in answer.sources]


@EACH
def test_a_recorded_scenario_holds(scenario, tmp_path):
    outcome = replay_scenario(scenario, workspace=tmp_path)

    assert not outcome.problems
    assert not [str(source) for source in sources(tmp_path) if source.kind == "not found"]
    assert outcome.usage.calls == len(Recording.read(scenario.replies).replies)


def with_reply(recording, at, text):
    """A recording of which one reply is another."""
    replies = list(recording.replies)
    replies[at] = replace(replies[at], completion=replace(replies[at].completion, text=text, tool_calls=()))
    return replace(recording, replies=tuple(replies))


RULES = {
    "once": ["Until when may a class cancel, what is due later, and what do pupils and teachers of a class pay?"],
    "twice": ["Until when may a school class cancel, and what is due later?", "What do pupils of a class pay?"],
    "never": [],
    "four times": [f"What do pupils of a class pay ({number})?" for number in range(4)],
}


@pytest.mark.parametrize(
    ("searches", "fits"), [("once", True), ("twice", True), ("never", False), ("four times", False)]
)
def test_documents_may_be_searched_again_for_the_same_step_but_not_without_end(tmp_path, searches, fits):
    answer = (
        "You can cancel until 3 days before, later it costs 18 crowns (bookings.md, lines 10-11). The visit costs 72 "
        "crowns (tickets.md, line 5)."
    )
    steps = [*(plans(words, to="DocumentRetriever") for words in RULES[searches]), plans(answer, to="User")]
    scenario = read_scenario(ROOT / "scenarios" / "retriever")

    outcome = run_scenario(scenario, ScriptedModel(steps), workspace=tmp_path)

    assert [problem for problem in outcome.problems if "posts" in problem] == list(outcome.problems)
    assert (not outcome.problems) is fits


LONG = 20
"""Replies of a recording of which not each is tried."""


def every_reply():
    """Replies of each recording: the first and the last one are tried always, those between among the slow tests.

    Tried are the first, the last and a middle one, the summaries that are read, and of a long recording every tenth.
    """
    for scenario in RECORDED:
        replies = Recording.read(scenario.replies).replies
        ends = (0, len(replies) - 1)
        for at, reply in enumerate(replies):
            text = reply.completion.text.lstrip()
            read = any(one.role == reply.role for one in replies[at + 1 :])
            summary = read and not text.startswith("{") and "```" not in text
            if at in ends or at == len(replies) // 2 or (len(replies) > LONG and at % 10 == 0) or summary:
                marks = () if at in ends else pytest.mark.slow
                yield pytest.param(scenario, at, marks=marks, id=f"{scenario.name}-{at + 1}")


@pytest.mark.parametrize(("scenario", "at"), list(every_reply()))
def test_a_scenario_with_a_corrupted_reply_turns_red(scenario, at, tmp_path):
    recording = Recording.read(scenario.replies)

    for wrong in ("\x00 {]", "", plans("I do not know.", to="User")):
        outcome = replay_scenario(scenario, workspace=tmp_path, recording=with_reply(recording, at, wrong))

        assert outcome.problems, f"reply {at + 1} was {wrong!r}"


@EACH
def test_replies_that_are_left_over_turn_it_red(scenario, tmp_path):
    recording = Recording.read(scenario.replies)
    longer = replace(recording, replies=(*recording.replies, recording.replies[-1]))

    outcome = replay_scenario(scenario, workspace=tmp_path, recording=longer)

    assert any("left over" in problem for problem in outcome.problems)


_LONGEST = "fifty_rounds"
"""Takes as long as all others; `definitions` compresses its history, too."""


def hashes(tmp_path, *, seed, zone):
    """The hashes of all prompts, from a process with an order of sets, a clock and folders of its own."""
    tmp_path.mkdir()
    names = [one.name for one in RECORDED if not one.hindrance and one.name != _LONGEST]
    environ = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-m", "tw_autogen.cli", "scenario", "show", "--prompts", "--json", *names],
        cwd=tmp_path, env=environ, capture_output=True, text=True, encoding="utf-8", timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, (ran.stderr, ran.stdout)
    return {name: [call["hash"] for call in calls] for name, calls in json.loads(ran.stdout).items()}


@pytest.mark.timeout(500)  # nearly every scenario, twice
def test_prompts_depend_neither_on_clocks_nor_on_ids_paths_and_the_order_of_sets(tmp_path):
    here = hashes(tmp_path / "one", seed="1", zone="Pacific/Kiritimati")
    there = hashes(tmp_path / "quite another", seed="2", zone="Pacific/Pago_Pago")

    assert here == there
    assert here


def test_the_readme_has_the_calls_and_tokens_of_the_recordings():
    readme = ROOT / "scenarios" / "README.md"

    text = readme.read_text(encoding="utf-8")
    assert text == put_table(readme, text, costs_table(SCENARIOS)), (
        "tw-autogen scenario table --write scenarios/README.md"
    )
