"""A benchmark that is run: fresh sessions, several at once, and going on after a stop."""

import json
import os
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tests.benchmarks.answers import Results, read_dabench, run_bench, summarize
from tests.benchmarks.answers.__main__ import command
from tw_autogen.errors import ConfigError, ModelError
from tw_autogen.session import open_session
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

ABOUT = {"benchmark": "dabench", "model": "scripted"}
REPLIES = {"mean draught": "@mean_draught[4.75]", "go together": "@r[0.99] @kind[none]", "How many": "@ships[4]"}
UNREADABLE = ""


class Knowing:
    """A model that answers by what the question is about, in whatever order it is asked, and stays with its answer."""

    def __init__(self, replies=REPLIES):
        self.replies = replies
        self.asked = []

    def complete(self, messages, **kwargs):
        text = str(messages[-1]["content"])
        if text.startswith("This has not gone to the User yet"):  # no code has run: it is asked to think again
            text = next(str(message["content"]) for message in messages[1:] if "From: User" in str(message["content"]))
        else:
            self.asked.append(text)
        found = next((said for about, said in self.replies.items() if about in text), UNREADABLE)
        plain = isinstance(found, BaseException) or found == UNREADABLE
        return ScriptedModel([found if plain else plans(found, to="User")]).complete(messages)


@pytest.fixture
def run(tmp_path, dabench):
    def run(model, *, jobs=1, out="out"):
        tasks, results = read_dabench(dabench), Results(tmp_path / out, ABOUT)
        run_bench(tasks, lambda: open_session(model, folder=tmp_path / "sessions"), results, jobs=jobs)
        return summarize(tasks, Results(tmp_path / out, ABOUT).all())

    return run


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_question_is_asked_once_and_graded_by_level_and_concept(run, jobs):
    model = Knowing()

    summary = run(model, jobs=jobs)

    assert len(model.asked) == 3
    assert all("harbour.csv: " in one for one in model.asked)  # the table came along, and was described
    assert summary.to_dict()["total"] == {
        "questions": 3, "answered": 3, "solved": 2, "accuracy": 0.6667, "accuracy_of_answered": 0.6667,
        "accuracy_proportional": 0.8333, "accuracy_by_sub_answer": 0.75,
    }  # fmt: skip
    assert {name: score.accuracy for name, score in summary.groups["level"].items()} == {"easy": 1.0, "medium": 0.0}
    assert [(name, score.questions, score.solved) for name, score in summary.groups["concept"].items()] == [
        ("Correlation Analysis", 1, 0),
        ("Summary Statistics", 3, 2),
    ]
    assert summary.left == 0


def test_the_labels_lie_where_neither_prompt_nor_code_finds_them(dabench, tmp_path):
    labels = str(dabench / "da-dev-labels.jsonl")
    looks = f"""\
import os
print([one for one in os.listdir(".") if one[0] != "."])
try:
    print(open({labels!r}).read())
except OSError as error:
    print("not there:", type(error).__name__)
"""
    steps = [plans("look", then="User"), codes(looks)]
    results = Results(tmp_path / "out", ABOUT)

    task = replace(read_dabench(dabench)[0], request="Look around.")
    with ScriptedModel(steps) as model:
        run_bench([task], lambda: open_session(model, folder=tmp_path / "sessions"), results)

    (one,) = results.all()
    assert "['harbour.csv']" in one.response
    assert "not there:" in one.response
    assert "4.75" not in one.response.replace("4.750", "")


def test_a_stopped_run_goes_on_with_what_is_left(run, tmp_path):
    stopping = Knowing({**REPLIES, "go together": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(stopping)
    with (tmp_path / "out" / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "7", "respo')  # cut off by a crash

    going_on = Knowing()
    summary = run(going_on)

    assert len(stopping.asked) == 2
    assert len(going_on.asked) == 2
    assert not any("mean draught" in one for one in going_on.asked)
    assert (summary.total.questions, summary.total.solved) == (3, 2)


def test_a_model_that_is_out_of_reach_ends_the_run_and_those_questions_are_asked_again(run):
    gone = Knowing(dict.fromkeys(REPLIES, ModelError("no route")))
    with pytest.raises(ModelError, match="no route"):
        run(gone)

    assert len(gone.asked) == 3
    assert run(Knowing()).total.questions == 3


def test_a_question_without_an_answer_counts_as_wrong(run):
    summary = run(Knowing({**REPLIES, "How many": "@ships[5]"}))
    unread = run(Knowing({**REPLIES, "mean draught": UNREADABLE}), out="another")

    assert (summary.total.questions, summary.total.solved, summary.total.answered) == (3, 1, 3)
    assert (unread.total.questions, unread.total.answered) == (3, 2)
    assert unread.total.accuracy < unread.total.accuracy_of_answered


def test_results_of_another_model_are_never_added_to(tmp_path):
    Results(tmp_path, ABOUT)

    with pytest.raises(ConfigError, match=r"bench\.json: these are results of model 'scripted', not 'other'"):
        Results(tmp_path, {**ABOUT, "model": "other"})


@pytest.fixture
def tw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = ("OPENAI_", "OAI_", "TW_AUTOGEN_", "XDG_")
    settings = {**{key: None for key in os.environ if key.startswith(ours)}, "HOME": str(tmp_path)}

    def run(*args):
        made = CliRunner().invoke(command, args, env=settings)
        assert made.exception is None or isinstance(made.exception, SystemExit), made.exception
        return made

    return run


def test_the_command_asks_prints_and_goes_on(tw, dabench, tmp_path):
    model = Knowing()
    with replay_server(model) as server:
        args = ("dabench", "--data", str(dabench), "--base-url", server.base_url, "--model", "tiny")
        first = tw(*args, "--limit", "1")
        rest = tw(*args, "--jobs", "2", "--json")
        shown = tw(*args)
        asked = len(model.asked)
    said = json.loads(rest.stdout)

    assert asked == 3
    assert "1/1 ✓ 3: 1 of 1" in first.stderr
    assert "3 questions, 1 of them known; results in .tw/bench/dabench-tiny" in rest.stderr
    assert (said["benchmark"], said["model"], said["total"]["solved"]) == ("dabench", "tiny", 2)
    assert re.search(r"all +3 +2 +66\.67% +83\.33% +75\.00%", shown.stdout)
    assert re.search(r"level: medium +1 +0 +0\.00%", shown.stdout)
    assert (tmp_path / ".tw" / "bench" / "dabench-tiny" / "results.jsonl").exists()


def test_the_command_asks_problems_of_one_level(tw, mathematics):
    with replay_server(Knowing({"Half of a pie": r"It is \boxed{0.5}."})) as server:
        ran = tw("math", "--data", str(mathematics), "--base-url", server.base_url, "--model", "t", "--level", "5")

    assert re.search(r"subject: Algebra +1 +1 +100\.00%", ran.stdout)


def test_a_level_that_is_none_is_an_error_that_names_those_there_are(tw, mathematics):
    ran = tw("math", "--data", str(mathematics), "--base-url", "http://127.0.0.1:9/v1", "--model", "t", "--level", "6")

    assert ran.exit_code == 2
    assert "'6' is no level; known: 1, 5" in ran.stderr
