"""Whole rounds: routing, limits, board, failures, and what each role is told. Real kernel, scripted model."""

import asyncio
import errno
import json
import math
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings, Policy
from tw_autogen.conversation import Post, RoundState
from tw_autogen.errors import (
    ConfigError,
    ModelError,
    RoleError,
    RoundError,
    RoundInterrupted,
    RoundLooped,
    RoundTimedOut,
    RoundTooCostly,
    RoundTooLong,
    SessionBusyError,
    SessionClosedError,
)
from tw_autogen.events import (
    CellOutput,
    CellStarted,
    Event,
    PostClosed,
    PostGrew,
    PostOpened,
    RoundClosed,
    RoundOpened,
    SessionClosed,
)
from tw_autogen.kernel import LocalKernel
from tw_autogen.model import Completion, Usage
from tw_autogen.planner import Planner
from tw_autogen.role import Role
from tw_autogen.session import (
    RoleConfig,
    Session,
    SessionSettings,
    open_session,
    open_team,
    past_sessions,
    read_journal,
    session_folder,
)
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans


@pytest.fixture(scope="module")
def kernel():
    with LocalKernel() as kernel:
        yield kernel


@pytest.fixture
def team(kernel, tmp_path):
    """Open sessions of Planner and CodeInterpreter over scripts; every step of a script must be used."""
    opened = []

    def open_team(plan_steps, code_steps, *, policy=None, tries=3, **options):
        models = ScriptedModel(plan_steps), ScriptedModel(code_steps)
        settings = CodeInterpreterSettings(max_tries=tries)
        interpreter = CodeInterpreter(models[1], kernel, policy=policy, settings=settings)
        session = Session([Planner(models[0], [interpreter]), interpreter], folder=tmp_path, **options)
        opened.append((session, models))
        return session, *models

    yield open_team
    for session, models in opened:
        session.close()
        for model in models:
            model.__exit__(None, None, None)


class Parrot(Role):
    name = "Parrot"
    intro = "Says it back."

    def reply(self, memory, **kwargs):
        asked = memory.last_post
        return Post(self.name, asked.send_from, asked.message)


def test_a_request_is_four_posts_from_user_to_user(team):
    session, *_ = team([plans("compute 6*7"), plans("It is 42.", to="User")], [codes("6 * 7")])

    answer = session.ask("what is 6*7?")

    path = [(post.send_from, post.send_to) for post in answer.round.posts]
    assert path == [
        ("User", "Planner"),
        ("Planner", "CodeInterpreter"),
        ("CodeInterpreter", "Planner"),
        ("Planner", "User"),
    ]
    assert (answer.text, answer.stop) == ("It is 42.", "Completed")
    assert answer.round.state is RoundState.finished


def test_the_planner_pins_request_and_plan_and_the_interpreter_reads_them(team):
    session, _, coder = team(
        [plans("compute 6*7", plan="1. compute\n2. report"), plans("It is 42.", to="User")], [codes("6 * 7")]
    )

    session.ask("what is 6*7?")

    assert "what is 6*7?" in session.rounds[-1].read_board("Planner")
    board = "# Board\nThe User's request:\nwhat is 6*7?\n\nThe plan:\n1. compute\n2. report\n\nToday is "
    assert board in coder.calls[0][-1]["content"]


def test_an_answer_to_a_question_belongs_to_the_request_that_led_to_it(team):
    session, planner, coder = team(
        [
            plans("Which factor?", to="User", stop="Clarification", plan="1. compute\n2. report"),
            json.dumps({"send_to": "CodeInterpreter", "message": "compute it", "plan": None, "stop": "InProcess"}),
            plans("It is @x[x].", to="User"),
            plans("It is @x[42].", to="User"),
            plans("Nothing more.", to="User"),
        ],
        [codes("6 * 7")],
    )

    session.ask("multiply 6, and answer as @x[x]")
    answer = session.ask("by 7")

    board = coder.calls[0][-1]["content"]
    assert "request:\nmultiply 6, and answer as @x[x]" in board
    assert "asked:\nWhich factor?\nand answered:\nby 7\n\nThe plan:\n1. compute" in board
    assert answer.text == "It is @x[42]."
    session.ask("and now?")
    assert "multiply 6" not in session.rounds[-1].read_board("Planner")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("still too busy (429)", "and answered:\nby 7\n\nThe work on that failed. The User said:\nonce more"),
        ("the request was refused (400): policy", "and answered:\nonce more"),
    ],
)
def test_an_answer_that_is_given_again_after_a_failure_belongs_to_the_request_as_well(team, error, said):
    go_on = {"send_to": "CodeInterpreter", "message": "compute it", "plan": None, "stop": "InProcess"}
    session, _, coder = team(
        [
            plans("Which factor?", to="User", stop="Clarification", plan="1. compute\n2. report"),
            ModelError(error),
            json.dumps(go_on),
            plans("It is @x[42].", to="User"),
        ],
        [codes("6 * 7")],
    )

    session.ask("multiply 6, and answer as @x[x]")
    with pytest.raises(RoundError, match="busy|refused"):
        session.ask("by 7")
    session.run_code("print(1)")
    session.ask("once more")

    board = coder.calls[0][-1]["content"]
    assert "request:\nmultiply 6, and answer as @x[x]" in board
    assert f"asked:\nWhich factor?\n{said}\n\nThe plan:\n1. compute" in board


def test_the_next_round_begins_with_an_empty_board(team):
    session, *_ = team([plans("compute 1"), plans("1", to="User"), plans("Hello.", to="User")], [codes("1")])
    session.ask("compute one")

    session.ask("hello")

    assert "compute one" not in session.rounds[-1].read_board("Planner")


def test_a_refused_import_goes_back_to_the_model_and_its_second_try_answers_the_user(team):
    session, _, coder = team(
        [plans("compute 6*7"), plans("It is 42.", to="User")],
        [codes("import os\nos.getcwd()"), codes("6 * 7")],
        policy=Policy(modules=frozenset({"math"})),
    )

    answer = session.ask("what is 6*7?")

    assert answer.text == "It is 42."
    assert "line 1 (module): import of 'os' is not allowed; allowed: math" in coder.calls[1][-1]["content"]


def test_findings_and_failures_are_counted_apart_and_both_stay_in_the_interpreters_history(team):
    session, planner, coder = team(
        [plans("divide"), plans("It is 1.", to="User")],
        [codes("eval('1')"), codes("1 / 0"), codes("exec('1')"), codes("[][1]"), codes("1")],
        tries=2,
    )

    session.ask("divide")

    told = "\n".join(message["content"] for message in coder.calls[-1])
    for trace in ("eval('1')", "ZeroDivisionError", "exec('1')", "IndexError"):
        assert trace in told
    assert "It took 5 tries; the one before: IndexError" in planner.calls[1][-1]["content"]


def test_a_task_that_keeps_failing_is_given_up_after_one_try_and_three_more_and_reported(team):
    session, planner, _ = team(
        [plans("divide"), plans("It can't be done.", to="User", stop="TaskFailure")],
        [codes(f"{n} / 0") for n in range(4)],
    )

    answer = session.ask("divide")

    assert answer.stop == "TaskFailure"
    report = planner.calls[1][-1]["content"]
    assert report.startswith("From: CodeInterpreter\nGiven up after 4 tries.\nThe code failed.")
    assert "ZeroDivisionError: division by zero" in report


def test_the_counters_begin_afresh_with_each_task(team):
    failing = [codes("1 / 0"), codes("2 / 0"), codes("1")]
    session, *_ = team([plans("one"), plans("two"), plans("done", to="User")], [*failing, *failing], tries=2)

    assert session.ask("twice").text == "done"


def test_a_text_reply_runs_nothing_and_reaches_the_planner(team):
    session, planner, _ = team([plans("explain"), plans("so", to="User")], ["A mean is a sum over a count."])

    session.ask("explain a mean")

    said = "From: CodeInterpreter (no code ran: these are words alone)\nA mean is a sum over a count."
    assert said in planner.calls[1][-1]["content"]
    assert session.rounds[-1].posts[2].attachments[0].content == "text"


def test_what_is_printed_and_what_is_returned_both_reach_the_planner(team):
    session, planner, _ = team([plans("show"), plans("ok", to="User")], [codes("print('seen')\n{'a': 1}")])

    session.ask("show")

    assert "Printed:\nseen\nResult:\n{'a': 1}" in planner.calls[1][-1]["content"]


def test_long_output_is_cut_in_the_middle_with_a_mark(team):
    session, planner, _ = team([plans("show"), plans("ok", to="User")], [codes("print('a' * 19000 + 'END')")])

    session.ask("show")

    told = planner.calls[1][-1]["content"]
    assert "characters left out" in told
    assert "END" in told
    assert len(told) < 11_000


def test_an_answer_is_forwarded_without_a_call_if_the_planner_said_so_and_nothing_warned(team):
    session, planner, coder = team(
        [plans("compute", then="User"), plans("Welcome.", to="User")], [codes("print('The answer is 42.')")]
    )

    answer = session.ask("what is 6*7?")

    assert answer.text == "The answer is 42."
    assert len(answer.round.posts) == 4
    assert answer.usage.calls == 2
    assert "What the task's last block prints is the answer that the User gets" in coder.calls[0][-1]["content"]
    session.ask("thanks")
    assert json.loads(planner.calls[1][-2]["content"])["message"] == "The answer is 42."


@pytest.mark.parametrize(
    "code", ["import sys\nprint('42')\nprint('odd', file=sys.stderr)", "x = 1"], ids=["a warning", "nothing to show"]
)
def test_an_answer_that_warned_or_says_nothing_goes_back_to_the_planner(team, code):
    session, *_ = team([plans("compute", then="User"), plans("I looked.", to="User")], [codes(code)])

    assert session.ask("go").text == "I looked."


def test_an_unknown_receiver_is_told_to_the_model_with_the_known_names(team):
    session, planner, _ = team([plans("cook", to="Cook"), plans("Hello.", to="User")], [])

    assert session.ask("hello").text == "Hello."
    assert (
        "'Cook', and nobody here is called that: write one of CodeInterpreter, User" in planner.calls[1][-1]["content"]
    )


def test_an_unreadable_reply_is_asked_for_again_three_times_and_then_ends_the_round(team):
    session, *_ = team([""] * 4, [])

    with pytest.raises(RoundError, match="4 replies could not be read") as caught:
        session.ask("hello")
    assert caught.value.round.state is RoundState.failed
    assert session.rounds[0].posts[0].message == "hello"


def test_a_failed_round_stays_visible_to_the_planner_with_the_reason(team):
    session, planner, _ = team([ModelError("the server is away"), plans("Again.", to="User")], [])
    with pytest.raises(RoundError, match="the server is away"):
        session.ask("first words")

    session.ask("second words")

    told = planner.calls[1][-1]["content"]
    assert told.index("first words") < told.index("failed, because the server is away") < told.index("second words")


def test_each_prompt_of_a_role_begins_with_its_last_one(team):
    session, planner, coder = team(
        [plans("one"), plans("two"), plans("done", to="User"), plans("three"), plans("end", to="User")],
        [codes("a = 1"), codes("1 / 0"), codes("a + 1"), codes("a + 2")],
    )
    session.ask("first")
    session.ask("second")

    for model in (planner, coder):
        for before, after in zip(model.calls, model.calls[1:], strict=False):
            assert after[: len(before)] == before


def test_the_interpreter_is_told_which_variables_exist(team):
    session, _, coder = team(
        [plans("load"), plans("use"), plans("done", to="User")],
        [codes("import pandas as pd\nsales = pd.DataFrame({'day': [1, 2], 'n': [3.5, None]})"), codes("sales.n.sum()")],
    )
    session.ask("go")

    assert "sales: DataFrame, 2 x 2, columns day: int64, n: float64" in coder.calls[1][-1]["content"]


def test_after_a_cell_only_what_is_new_of_the_variables_is_told(team):
    session, _, coder = team(
        [plans("make a", then="User"), plans("make b", then="User"), plans("look", then="User")],
        [codes("aaa = 11\nprint('ok')"), codes("bbb = 22\nprint('ok')"), codes("print('ok')")],
    )
    for _ in range(3):
        session.ask("go on")

    said = "\n".join(message["content"] for message in coder.calls[-1] if message["role"] == "user")
    assert said.count("aaa: int, 11") == 1
    assert said.count("bbb: int, 22") == 1


def test_files_are_copied_read_only_and_described_in_the_request(team, tmp_path):
    (tmp_path / "in").mkdir()
    sales = tmp_path / "in" / "sales.csv"
    sales.write_text("day,units\n1,10\n2,\n", encoding="utf-8")
    session, planner, _ = team([plans("sum"), plans("10", to="User")], [codes("open('sales.csv').read()")])

    session.ask("sum the units", files=[sales])

    told = planner.calls[0][-1]["content"]
    assert "- sales.csv: 18 bytes, CSV: 2 rows x 2 columns" in told
    assert "all of it:\n    | day,units\n    | 1,10\n    | 2," in told
    assert (session.folder / "sales.csv").stat().st_mode & 0o222 == 0


def test_code_reads_a_given_file_and_a_write_to_it_says_what_to_do(team, tmp_path):
    sales = tmp_path / "sales.csv"
    sales.write_text("units\n10\n", encoding="utf-8")
    spoil = "import pandas as pd\npd.DataFrame({'units': [0]}).to_csv('sales.csv')"
    heed = "import pandas as pd\npd.read_csv('sales.csv').to_csv('copy.csv', index=False)\nopen('copy.csv').read()"
    session, _, coder = team([plans("double"), plans("done", to="User")], [codes(spoil), codes(heed)])

    answer = session.ask("double the units", files=[sales])

    told = coder.calls[1][-1]["content"]
    assert "sales.csv is read-only, as files are that were given: copy it under another name" in told
    assert [artifact.name for artifact in answer.artifacts] == ["copy.csv"]
    assert (session.folder / "sales.csv").read_text(encoding="utf-8") == "units\n10\n"


def test_a_file_that_is_given_again_is_the_new_one(team, tmp_path):
    sales = tmp_path / "sales.csv"
    session, planner, coder = team(
        [plans("a"), plans("done", to="User"), plans("b"), plans("done", to="User")],
        [codes("open('sales.csv').read()"), codes("open('sales.csv').read()")],
    )
    for text in ("units\n10\n", "units\n20\n"):
        sales.write_text(text, encoding="utf-8")
        session.ask("sum", files=[sales])

    assert "'units\\n20\\n'" in planner.calls[3][-1]["content"]


def test_a_link_under_a_given_name_is_replaced_and_not_followed(team, tmp_path):
    (tmp_path / "in").mkdir()
    sales = tmp_path / "in" / "sales.csv"
    sales.write_text("units\n10\n", encoding="utf-8")
    host = tmp_path / "host.txt"
    host.write_text("the host's", encoding="utf-8")
    session, *_ = team([plans("done", to="User")], [])
    (session.folder / "sales.csv").unlink(missing_ok=True)
    (session.folder / "sales.csv").symlink_to(host)
    assert (session.folder / "sales.csv").is_symlink()

    session.ask("sum", files=[sales])

    assert host.read_text(encoding="utf-8") == "the host's"
    assert not (session.folder / "sales.csv").is_symlink()
    assert (session.folder / "sales.csv").read_text(encoding="utf-8") == "units\n10\n"


def test_a_file_that_does_not_exist_is_an_error_before_anything_runs(team):
    session, *_ = team([], [])

    with pytest.raises(ConfigError, match=r"nowhere\.csv: there is no such file"):
        session.ask("sum", files=["nowhere.csv"])
    assert session.rounds == []


def test_variables_of_a_request_are_variables_of_the_code(team):
    session, planner, _ = team([plans("sum"), plans("6", to="User")], [codes("int(frame.n.sum()) * factor")])

    session.ask("sum", variables={"frame": pd.DataFrame({"n": [1, 2]}), "factor": 2})

    assert "- frame: DataFrame, 2 rows x 1 columns: 'n' (int64)" in planner.calls[0][-1]["content"]
    assert "Result:\n6" in planner.calls[1][-1]["content"]


@pytest.mark.parametrize("asked_between", [0, 1])
def test_variables_that_are_given_again_are_put_again_changed_in_place_or_by_code(team, asked_between):
    frame, numbers = pd.DataFrame({"n": [1, 2]}), [7]
    no_code = [plans("Thanks.", to="User")]
    session, *_ = team(
        [
            plans("use up", then="User"),
            *no_code * asked_between,
            plans("look", then="User"),
            plans("again", then="User"),
        ],
        [
            codes("numbers = []; frame.n.sum()"),
            codes("numbers, int(frame.n.sum())"),
            codes("numbers, int(frame.n.sum())"),
        ],
    )
    given = {"frame": frame, "numbers": numbers}

    session.ask("use up", variables=given)
    frame.loc[2] = 100
    for _ in range(asked_between):  # no code runs for it
        session.ask("these are new", variables=given)
    answer = session.ask("look", variables={} if asked_between else given)
    frame.loc[3] = 1000

    assert answer.text == "([7], 103)"
    assert session.ask("again").text == "([7], 103)"


def test_roles_that_share_a_kernel_put_what_was_given_once(tmp_path):
    model = ScriptedModel(
        [
            *(
                plans("clean", to="Cleaner", code="values = [one for one in values if one > 0]"),
                plans("sum", to="Counter"),
            ),
            *(codes("values, sum(values)"), plans("Done.", to="User")),
            *(
                plans("set", to="Cleaner", code="n += 1"),
                plans("look", to="Counter"),
                codes("n"),
                plans("Done.", to="User"),
            ),
        ]
    )
    coders = [RoleConfig("code_interpreter", name=name, model=model) for name in ("Cleaner", "Counter")]

    with model, open_team([RoleConfig("planner", model=model), *coders], folder=tmp_path) as session:
        session.ask("clean, then sum", variables={"values": [1, -5, 2]})
        session["n"] = 1
        session.ask("add one")

    said = [[post.message for post in one.posts if post.send_from == "Counter"] for one in session.rounds]
    assert "([1, 2], 3)" in said[0][0]
    assert "Result:\n2" in said[1][0]


def test_a_given_variable_is_there_by_name_before_any_code_has_run(tmp_path):
    steps = [plans("Noted.", to="User"), plans("count", then="User"), codes("n += 1\nprint(n)")]
    with ScriptedModel(steps) as model, open_session(model, folder=tmp_path) as session:
        session.ask("keep it", variables={"n": 1})
        assert session["n"] == 1
        session.ask("count")
        assert session["n"] == 2
        with pytest.raises(KeyError, match="other"):
            session["other"]


def test_files_that_code_makes_are_artifacts_of_the_answer(team):
    session, *_ = team([plans("save"), plans("Saved.", to="User")], [codes("open('hello.txt', 'w').write('hi')")])

    answer = session.ask("save")

    assert [artifact.name for artifact in answer.artifacts] == ["hello.txt"]
    assert answer.artifacts[0].path.read_text(encoding="utf-8") == "hi"


def test_files_of_a_failed_try_stay_and_are_artifacts_too(team):
    fails = codes("open('chart.svg', 'w').write('<svg/>')\nprint(1 / 0)")
    session, *_ = team([plans("draw"), plans("Drawn.", to="User")], [fails, codes("open('a.csv', 'w').write('x')")])

    answer = session.ask("draw")

    assert [artifact.name for artifact in answer.artifacts] == ["chart.svg", "a.csv"]


def test_a_session_is_found_however_long_its_first_question_is(tmp_path):
    with (
        ScriptedModel([plans("Yes.", to="User")]) as model,
        open_session(model, folder=tmp_path, kernel=None) as session,
    ):
        session.ask('Größe "a"\n' + "ä\n" * 400_000)

    (found,) = past_sessions(tmp_path)
    assert found.question.startswith("Größe ")
    assert found.question.endswith("…")
    assert session_folder(None, tmp_path) == session.journal.parent


def test_code_with_fences_that_is_run_as_it_stands_is_one_block(team):
    session, *_ = team([], [])

    session.run_code('text = """\n```\n"""\nprint(len(text))')

    words = session.rounds[-1].user_query
    assert words == 'This code was run as it stands:\n````python\ntext = """\n```\n"""\nprint(len(text))\n````'


def test_files_of_a_round_that_timed_out_are_files_of_the_session_as_long_as_they_are_there(team):
    code = "for name in 'ab': open(f'{name}.csv', 'w').close()\nwhile True: pass"
    session, *_ = team([plans("save")], [codes(code)], settings=SessionSettings(round_seconds=2))

    with pytest.raises(RoundTimedOut, match="round_seconds"):
        session.ask("save")
    (session.folder / "b.csv").unlink()

    assert [artifact.name for artifact in session.artifacts] == ["a.csv"]


def test_a_round_that_goes_on_and_on_ends_with_all_its_posts(team):
    session, *_ = team([plans("a"), plans("b")], [codes("1"), codes("2")], settings=SessionSettings(max_posts=5))

    with pytest.raises(RoundTooLong, match="5 posts and no answer.*CodeInterpreter.*session.max_posts") as caught:
        session.ask("go")
    assert len(caught.value.round.posts) == 5
    assert "5 posts" in session.rounds[0].error


def test_code_that_fails_in_the_same_way_twice_is_not_tried_a_third_time(team):
    session, planner, _ = team(
        [plans("divide"), plans("It can't be done.", to="User", stop="TaskFailure")], [codes("1 / 0")] * 2
    )

    session.ask("divide")

    report = planner.calls[1][-1]["content"]
    assert "Given up after 2 tries: the same code failed in the same way twice." in report


def test_code_that_is_refused_twice_for_the_same_is_not_judged_a_third_time(team):
    session, planner, _ = team([plans("cheat"), plans("No.", to="User")], [codes("eval('1')")] * 2)

    session.ask("cheat")

    assert "Given up after 2 tries: the same code failed in the same way twice." in planner.calls[1][-1]["content"]


def test_a_task_given_again_after_the_same_answer_twice_ends_the_round_with_what_was_found(team):
    session, *_ = team([plans("compute 6*7")] * 3, [codes("6 * 7")] * 2)

    with pytest.raises(RoundLooped, match=r"same twice: 'compute 6\*7'\. Found until then: 42"):
        session.ask("what is 6*7?")


def test_a_result_in_another_form_than_asked_for_is_sent_back_once_only(team):
    script = [plans("compute", then="User"), plans("It can't be JSON.", to="User")]
    session, *_ = team(script, [codes("print('forty-two')")])

    assert session.ask("What is 6*7? Answer in JSON only.").text == "It can't be JSON."


def test_an_image_behind_a_request_that_failed_goes_in_one_message_and_prompts_still_grow_at_their_end(team):
    dot = "data:image/png;base64,AAAA"
    hello = plans("Hello.", to="User")
    session, planner, _ = team([ModelError("no server"), hello, hello], [])
    with pytest.raises(RoundError, match="no server"):
        session.ask("hello")

    session.ask("what is this?", images=[dot])
    session.ask("and now?")

    _, second, third = planner.calls
    assert [one["role"] for one in second] == ["system", "user"]
    first, seen, *more = second[1]["content"]
    assert "hello" in first["text"]
    assert "what is this?" in first["text"]
    assert (seen["image_url"], more) == ({"url": dot}, [])
    assert third[:2] == second


@pytest.mark.parametrize("image", ["photo.png", "/etc/photo.png", "file:///photo.png", "data:/../photo.png", "~/a.png"])
def test_an_image_that_is_a_path_is_refused_before_any_model_sees_it(team, image):
    session, planner, _ = team([], [])

    with pytest.raises(ConfigError, match="is no URL of an image"):
        session.ask("what is this?", images=[image])

    assert planner.calls == []


def test_a_session_says_where_code_runs_now(tmp_path):
    with ScriptedModel([plans("compute", then="User")]) as planner, ScriptedModel([codes("print(6 * 7)")]) as coder:
        interpreter = CodeInterpreter(coder, LocalKernel)
        with Session([Planner(planner, [interpreter]), interpreter], folder=tmp_path) as session:
            before = session.where
            session.ask("what is 6*7?")
            after = session.where

    assert "starts with the first cell" in before
    assert "starts with the first cell" not in after
    assert re.search(r"Python 3\.\d+", after)


def test_a_task_may_be_given_as_often_as_its_answer_changes(team):
    script = [plans("look at the counter")] * 3 + [plans("It is 3.", to="User")]
    looks = [codes("count = globals().get('count', 0) + 1\ncount")] * 3
    session, *_ = team(script, looks)

    assert session.ask("count to 3").text == "It is 3."


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({"max_calls": 2}, "2 model calls and no answer for the user; `session.max_calls` is 2"),
        ({"max_tokens": 150}, "220 tokens and no answer for the user; `session.max_tokens` is 150"),
        ({"max_dollars": 0.05}, r"0\.0600 dollars and no answer for the user; `session.max_dollars` is 0\.05"),
    ],
)
def test_a_round_that_costs_too_much_ends_before_the_next_call_with_what_was_found(team, limits, reached):
    spent = Usage(100, 0, 10, 1, dollars=0.03)
    steps = Completion(plans("compute 6*7"), usage=spent), Completion(codes("6 * 7"), usage=spent)
    session, *_ = team([steps[0]], [steps[1]], settings=SessionSettings(**limits))

    with pytest.raises(RoundTooCostly, match=rf": {reached}\. Raise it if the task needs more\. Found until then: 42"):
        session.ask("what is 6*7?")


def test_what_a_cell_of_a_task_gave_that_was_not_reported_yet_was_found_too(team):
    steps = [codes("# look\nprint('3000 rows')"), codes("# look\nlooked = True"), codes("1 / 0")]
    session, *_ = team([plans("compute")], steps, settings=SessionSettings(max_calls=4))

    with pytest.raises(RoundTooCostly, match=r"`session\.max_calls` is 4\..* Found until then: 3000 rows$"):
        session.ask("what is the total?")


def test_a_call_without_a_price_does_not_lift_the_limit_of_money(team):
    known, unknown = Usage(100, 0, 10, 1, dollars=0.03), Usage(100, 0, 10, 1)
    planned = [Completion(plans(task), usage=known) for task in ("compute 6*7", "check it")]
    session, *_ = team(planned, [Completion(codes("6 * 7"), usage=unknown)], settings=SessionSettings(max_dollars=0.05))

    with pytest.raises(RoundTooCostly, match=r"at least 0\.0600 dollars and no answer"):
        session.ask("what is 6*7?")


def test_a_round_that_is_answered_within_its_limit_is_answered(team):
    session, *_ = team([plans("compute", then="User")], [codes("print('42')")], settings=SessionSettings(max_calls=2))

    assert session.ask("what is 6*7?").text == "42"


def test_an_answer_tells_what_it_cost_and_where_the_time_went(team):
    spent = Usage(100, 20, 10, 1, dollars=0.03)
    session, *_ = team(
        [Completion(plans("wait", then="User"), usage=spent)],
        [Completion(codes("import time; time.sleep(0.5); print('done')"), usage=spent)],
    )

    answer = session.ask("wait")  # on a busy machine the host may learn late that the cell has begun

    assert answer.usage == Usage(200, 40, 20, 2, dollars=0.06) == session.usage
    assert 0.2 <= answer.seconds.kernel <= answer.seconds.total
    assert answer.seconds.own == pytest.approx(
        answer.seconds.total - answer.seconds.kernel - answer.seconds.model, abs=1e-6
    )
    closed = list(read_journal(session.journal))[-1]
    assert (closed.usage["dollars"], closed.kernel_seconds) == (0.06, answer.seconds.kernel)


def test_one_call_without_a_price_leaves_the_cost_unknown(team):
    session, *_ = team(
        [Completion(plans("compute", then="User"), usage=Usage(9, 0, 9, 1, dollars=0.5))], [codes("print('42')")]
    )

    assert session.ask("what is 6*7?").usage.dollars is None


def test_an_answer_that_is_not_in_the_form_asked_for_is_sent_back_once(team):
    session, planner, _ = team(
        [plans("It is 42.", to="User"), plans('{"answer": 42}', to="User")],
        [],
    )

    assert session.ask("What is 6*7? Answer in JSON only.").text == '{"answer": 42}'
    assert (
        "the request asks for JSON, and your message is not valid JSON and nothing else"
        in planner.calls[1][-1]["content"]
    )


def test_an_answer_that_stays_in_another_form_is_given_all_the_same(team):
    session, *_ = team([plans("42", to="User"), plans("I can't.", to="User")], [])

    assert session.ask("What is 6*7? Answer as @result[number].").text == "I can't."


def test_a_round_ends_when_its_time_is_over(team):
    session, *_ = team([plans("wait")], [codes("while True: pass")], settings=SessionSettings(round_seconds=0.6))

    with pytest.raises(RoundTimedOut, match=r"in 0\.6 seconds. Raise `session\.round_seconds` \(.* --timeout\)"):
        session.ask("wait")


def test_time_in_host_calls_that_fail_ends_with_the_round(tmp_path):
    def look_up(name: str) -> str:
        """Look a name up."""
        time.sleep(0.05)
        raise LookupError(name)

    code = "while True:\n    try: look_up('x')\n    except Exception: pass"
    settings = {"session.round_seconds": 2, "code_interpreter.cell_seconds": 1, "code_interpreter.host_seconds": 900}
    settings["code_interpreter.host_calls"] = 10**6
    model = ScriptedModel([codes(code)])
    began = time.monotonic()
    with (
        open_session(model, roles="code_interpreter", plugins=[look_up], folder=tmp_path, settings=settings) as session,
        pytest.raises(RoundTimedOut, match="round_seconds"),
    ):
        session.ask("look")

    assert time.monotonic() - began < 30


def test_interrupt_from_another_thread_stops_the_cell_and_keeps_the_variables(team):
    session, planner, _ = team(
        [plans("loop"), plans("look"), plans("It is 7.", to="User")],
        [codes("kept = 7\nprint('on', flush=True)\nwhile True: pass"), codes("kept")],
    )

    def stop(event):
        if isinstance(event, CellOutput):
            threading.Thread(target=session.interrupt).start()

    session.subscribe(stop)
    with pytest.raises(RoundInterrupted, match="stopped"):
        session.ask("loop")
    session.unsubscribe(stop)

    assert session.ask("look").text == "It is 7."
    assert "failed, because it was stopped by the user" in planner.calls[1][-1]["content"]
    assert "Result:\n7" in planner.calls[2][-1]["content"]


class Patient(Parrot):
    def __init__(self):
        self.begun, self.released = threading.Event(), threading.Event()

    def reply(self, memory, **kwargs):
        self.begun.set()
        for _ in range(1000):
            if self.released.wait(0.01):
                return super().reply(memory, **kwargs)
            if kwargs["turn"].cancelled.is_set():
                break
        raise RuntimeError("it was given up")


@pytest.mark.parametrize(
    ("cancelled", "rounds"),
    [
        ("second", [("first", RoundState.finished)]),
        ("first", [("first", RoundState.failed), ("second", RoundState.finished)]),
    ],
)
def test_of_two_requests_that_are_awaited_the_cancelled_one_ends_and_the_other_goes_on(tmp_path, cancelled, rounds):
    role = Patient()

    async def ask_two(session):
        tasks = {"first": asyncio.create_task(session.aask("first"))}
        await asyncio.to_thread(role.begun.wait, 10)
        tasks["second"] = asyncio.create_task(session.aask("second"))
        with pytest.raises(asyncio.TimeoutError):  # it waits for the first one
            await asyncio.wait_for(asyncio.shield(tasks["second"]), 0.2)
        task = tasks.pop(cancelled)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        role.released.set()
        return [(await one).text for one in tasks.values()]

    with Session([role], folder=tmp_path) as session:
        answers = asyncio.run(ask_two(session))

        assert [(one.user_query, one.state) for one in session.rounds] == rounds
    assert answers == [{"first": "second", "second": "first"}[cancelled]]


def test_awaited_requests_take_no_thread_of_the_loops_own_pool(tmp_path):
    together = threading.Barrier(3)

    class Meets(Parrot):
        def reply(self, memory, **kwargs):
            together.wait(20)
            return super().reply(memory, **kwargs)

    async def ask_all(sessions):
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        asked = [asyncio.ensure_future(session.aask(f"{number}")) for number, session in enumerate(sessions)]
        await asyncio.wait_for(loop.run_in_executor(None, together.wait, 20), 30)
        return [(await one).text for one in asked]

    with Session([Meets()], folder=tmp_path / "a") as first, Session([Meets()], folder=tmp_path / "b") as second:
        assert asyncio.run(ask_all([first, second])) == ["0", "1"]


def test_a_host_may_drive_a_round_by_hand(team):
    session, *_ = team([plans("compute"), plans("done", to="User")], [codes("1")])

    session.open_round("go")
    spoken = []
    while role := session.next_role():
        spoken.append(session.step(role).send_from)
    answer = session.close_round()

    assert spoken == ["Planner", "CodeInterpreter", "Planner"]
    assert answer.text == "done"


def test_a_round_inside_a_round_is_refused(team):
    session, *_ = team([plans("hi", to="User")], [])
    session.open_round("one")

    with pytest.raises(SessionBusyError, match="a round is open"):
        session.open_round("two")
    session.step(session.next_role())
    session.close_round()


@pytest.mark.parametrize("act", ["next_role", "step", "post", "close_round"])
@pytest.mark.parametrize("past", [0, 1])
def test_a_step_without_an_open_round_is_no_reason_to_wait(team, act, past):
    session, *_ = team([plans("hi", to="User")] * past, [])
    for _ in range(past):
        session.ask("one")
    arguments = {"step": session.roles[:1], "post": ("User", "two")}

    with pytest.raises(ConfigError, match="no round is open; begin one with open_round"):
        getattr(session, act)(*arguments.get(act, ()))


def test_a_closed_session_says_so(team):
    session, *_ = team([], [])
    session.close()
    session.close()

    with pytest.raises(SessionClosedError, match="is closed; open a new session"):
        session.ask("hello")


def test_a_session_closes_itself_after_a_long_silence(tmp_path):
    gone = threading.Event()
    session = Session(
        [Parrot()],
        folder=tmp_path,
        settings=SessionSettings(idle_seconds=0.05),
        handlers=[lambda event: gone.set() if isinstance(event, SessionClosed) else None],
    )

    assert gone.wait(10)
    with pytest.raises(SessionClosedError, match=r"0\.05 seconds without a request"):
        session.ask("hello")


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("seconds", [math.inf, 1e12])
def test_a_session_may_be_silent_for_longer_than_any_system_waits(tmp_path, seconds):
    with Session([Parrot()], folder=tmp_path, settings=SessionSettings(idle_seconds=seconds)) as session:
        waiting = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
        for one in waiting:
            one.join(0.2)

        assert waiting
        assert all(one.is_alive() for one in waiting)
        assert session.ask("hello").text == "hello"


class OnFullDisk(Session):
    full_from = None

    def emit(self, event):
        if self.full_from and isinstance(event, self.full_from):
            self.full_from = Event
            raise OSError(errno.ENOSPC, "No space left on device")
        super().emit(event)


@pytest.mark.parametrize("full_from", [RoundOpened, PostClosed, PostOpened, RoundClosed])
def test_a_session_answers_again_once_a_full_disk_has_room(tmp_path, full_from):
    with OnFullDisk([Parrot()], folder=tmp_path) as session:
        session.full_from = full_from
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                session.ask("hello")
        session.full_from = None

        assert session.ask("hello again").text == "hello again"
        assert [one.user_query for one in session.rounds if one.state is RoundState.finished][-1] == "hello again"


def test_a_session_closes_itself_after_a_request_that_could_not_begin(tmp_path):
    gone, table = threading.Event(), tmp_path / "a.csv"
    table.write_text("x\n1\n", encoding="utf-8")
    session = Session(
        [Parrot()],
        folder=tmp_path / "session",
        settings=SessionSettings(idle_seconds=1.0),
        handlers=[lambda event: gone.set() if isinstance(event, SessionClosed) else None],
    )
    (session.folder / "a.csv").mkdir()
    with pytest.raises(ConfigError, match=r"has a folder 'a\.csv'"):
        session.ask("sum", files=[table])

    assert gone.wait(10)


def test_without_a_planner_the_first_role_answers_the_user(tmp_path):
    with Session([Parrot()], folder=tmp_path) as session:
        answer = session.ask("hello")

    assert answer.text == "hello"
    assert len(answer.round.posts) == 2


def test_an_interpreter_alone_answers_with_its_output(kernel, tmp_path):
    with (
        ScriptedModel([codes("print('two')", thought="I count.")]) as model,
        Session([CodeInterpreter(model, kernel)], folder=tmp_path) as session,
    ):
        assert session.ask("count").text == "I count.\n\ntwo"


def test_any_role_may_be_the_planners_worker(tmp_path):
    with ScriptedModel([plans("say it", to="Parrot"), plans("It said it.", to="User")]) as model:
        parrot = Parrot()
        with Session([Planner(model, [parrot]), parrot], folder=tmp_path) as session:
            session.ask("parrot")

    assert "## Parrot\nSays it back." in model.calls[0][0]["content"]
    assert "From: Parrot\nsay it" in model.calls[1][-1]["content"]


class Broken(Parrot):
    """Answers `hello` only, `text` with no post, and `other` with a post of somebody else's."""

    def reply(self, memory, **kwargs):
        if memory.last_post.message == "text":
            return "text"
        if memory.last_post.message == "other":
            return Post("User", memory.last_post.send_from, "as if")
        return super().reply(memory) if memory.last_post.message == "hello" else {}["oops"]


@pytest.mark.parametrize(
    ("asked", "problem", "cause"),
    [
        ("raise", r"the role Parrot failed: KeyError: 'oops' \(.*test_session\.py:\d+\)", KeyError),
        ("text", r"the role Parrot failed: reply\(\) gave str, not a Post; .* \(.*test_session\.py:\d+\)", None),
        ("other", r"the role Parrot failed: reply\(\) gave a Post from 'User'; .* \(.*test_session\.py:\d+\)", None),
    ],
)
def test_a_bug_in_a_role_ends_the_round_with_its_name_and_line_and_the_talk_goes_on(tmp_path, asked, problem, cause):
    with Session([Broken()], folder=tmp_path) as session:
        with pytest.raises(RoleError, match=problem) as caught:
            session.ask(asked)
        assert session.ask("hello").text == "hello"

    assert caught.value.role == "Parrot"
    assert type(caught.value.__cause__) is (cause or type(None))
    assert [one.state for one in session.rounds] == [RoundState.failed, RoundState.finished]
    assert re.search(problem, session.rounds[0].error)


def test_a_bug_in_what_a_role_offers_names_the_role_and_the_line(tmp_path):
    class Offers(Parrot):
        def offer(self, request):
            return {}["oops"]

    parrot = Offers()
    with (
        Session([Planner(ScriptedModel([]), [parrot]), parrot], folder=tmp_path) as session,
        pytest.raises(RoleError, match=r"the role Parrot failed: KeyError: 'oops' \(.*test_session\.py:\d+\)"),
    ):
        session.ask("parrot")


def test_what_the_client_of_a_model_raises_comes_out_as_it_is(tmp_path):
    class Asking(Parrot):
        def reply(self, memory, **kwargs):
            return kwargs["turn"].ask(ScriptedModel([]), [{"role": "user", "content": "?"}], caller=self.name)

    with Session([Asking()], folder=tmp_path) as session, pytest.raises(AssertionError, match="asked once more"):
        session.ask("hello")


def test_a_failing_handler_does_not_break_the_round(tmp_path, caplog):
    def broken(event):
        raise ZeroDivisionError("in a handler")

    with Session([Parrot()], folder=tmp_path, handlers=[broken]) as session:
        assert session.ask("hello").text == "hello"
    assert "a handler failed on RoundOpened" in caplog.text


def test_code_of_the_users_own_runs_between_requests_and_the_model_sees_what_it_left(team):
    session, _, coder = team([plans("double it", then="User")], [codes("print('Twice:', mine * 2)")], policy=Policy())

    ran = session.run_code("mine = 21\nprint('made')\nmine")
    assert (ran.text, ran.usage.calls) == ("made\n21", 0)
    assert [post.send_from for post in ran.round.posts] == ["User", "CodeInterpreter"]
    assert "mine: int, 21" in map(str, session.code_variables())

    assert session.ask("Double it.").text == "Twice: 42"
    asked = [one["content"] for one in coder.calls[0] if one["role"] != "system"]
    assert "This code was run as it stands:\n```python\nmine = 21" in asked[0]
    assert asked[1] == "made\n21"


def test_code_of_the_users_own_keeps_the_rules_and_its_failure_is_an_answer(team):
    session, *_ = team([], [])

    refused, failed = session.run_code("import subprocess"), session.run_code("1 / 0")

    assert "The code was not run, because it breaks rules" in refused.text
    assert "ZeroDivisionError" in failed.text
    assert [one.stop for one in (refused, failed, session.run_code("1"))] == ["TaskFailure", "TaskFailure", "Completed"]
    assert {one.state for one in session.rounds} == {RoundState.finished}


def test_a_session_whose_roles_run_no_code_says_so(tmp_path):
    with Session([Parrot()], folder=tmp_path) as session:
        assert session.code_variables() == ()
        with pytest.raises(ConfigError, match="no role of this session runs code; it has Parrot"):
            session.run_code("1")
        assert session.ask("still here").text == "still here"


def test_the_journal_holds_the_events_and_reads_back(team):
    heard = []
    session, *_ = team([plans("compute"), plans("It is 1.", to="User")], [codes("1")], handlers=[heard.append])
    session.ask("go")
    session.close()

    written = list(read_journal(session.journal))

    assert written == [event for event in heard if not isinstance(event, PostGrew)]
    assert [event.post.send_from for event in written if isinstance(event, PostClosed)] == [
        "User",
        "Planner",
        "CodeInterpreter",
        "Planner",
    ]
    assert any(isinstance(event, CellStarted) for event in written)


def test_a_journal_that_was_cut_off_in_its_last_line_still_reads(team):
    session, *_ = team([plans("hi", to="User")], [])
    session.ask("go")
    session.close()
    whole = len(list(read_journal(session.journal)))
    session.journal.write_text(session.journal.read_text(encoding="utf-8")[:-20], encoding="utf-8")

    assert len(list(read_journal(session.journal))) == whole - 1


def test_two_roles_of_one_name_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="names of their own"):
        Session([Parrot(), Parrot()], folder=tmp_path)


def test_a_single_role_file_and_plugin_need_no_list_and_a_policy_may_be_named(tmp_path):
    table = tmp_path / "sales.csv"
    table.write_text("a\n1\n", encoding="utf-8")
    with (
        ScriptedModel([codes("import os"), codes("6 * 7")]) as model,
        open_session(
            model,
            roles="code_interpreter",
            plugins="time_parts",
            policy="strict",
            kernel=lambda folder: FakeKernel(lambda code: "42", folder=folder),
            folder=tmp_path / "sessions",
        ) as session,
    ):
        answer = session.ask("look", files=str(table))

        assert (session.folder / "sales.csv").is_file()

    assert "import of 'os' is not allowed" in model.calls[1][-1]["content"]
    assert "time_parts" in str(model.calls[0])
    assert answer.round.posts[-1].send_from == "CodeInterpreter"


@pytest.mark.parametrize("model", [5, {"Planner": 5}])
def test_what_is_no_model_is_told_what_a_model_is(tmp_path, model):
    with pytest.raises(ConfigError, match=r"model: 5 \(int\) is no model; .*OpenAIModel.*; a model's name is a text"):
        open_session(model, folder=tmp_path)


def test_a_policy_of_no_name_is_told_its_neighbour(tmp_path):
    with pytest.raises(ConfigError, match="no policy is called 'strickt'; did you mean 'strict'"):
        open_session(ScriptedModel([]), policy="strickt", folder=tmp_path)


def itself():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s, folder: s.ask(5),
        lambda s, folder: s.ask(None),
        lambda s, folder: s.ask(["q"]),
        lambda s, folder: s.ask("q", files=5),
        lambda s, folder: s.ask("q", files=[None]),
        lambda s, folder: s.ask("q", files=[folder]),
        lambda s, folder: s.ask("q", files=["x" * 5000]),
        lambda s, folder: s.ask("q", files=["nul\0"]),
        lambda s, folder: s.ask("q", variables=[1]),
        lambda s, folder: s.ask("q", variables={"f": lambda: 1}),
        lambda s, folder: s.ask("q", variables={"f": [object()]}),
        lambda s, folder: s.ask("q", variables={"f": itself()}),
        lambda s, folder: s.ask("q", variables={"f": pd.DataFrame({"a": [object()]})}),
        lambda s, folder: s.ask("q", variables={"not a name": 1}),
        lambda s, folder: s.ask("q", variables={5: 1}),
        lambda s, folder: s.ask("q", images="https://x/y.png"),
        lambda s, folder: s.ask("q", images=[5]),
        lambda s, folder: s.run_code(5),
        lambda s, folder: s.save_example(5),
        lambda s, folder: s.save_example(folder / "a.yaml", "Nobody"),
        lambda s, folder: s.save_experience(),
        lambda s, folder: s.open_round(5),
        lambda s, folder: s.step(None),
        lambda s, folder: s.close_round(),
        lambda s, folder: s.remember("q"),
        lambda s, folder: s.subscribe(5),
    ],
)
def test_a_wrong_argument_leaves_the_session_as_it_was(wrong, tmp_path):
    with ScriptedModel([plans("fine.", to="User")]) as model, Session([Planner(model, [])], folder=tmp_path) as session:
        with pytest.raises((ConfigError, TypeError, AttributeError), match="."):
            wrong(session, tmp_path)

        assert session.ask("and now?").text == "fine."
        assert session.variables == {}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"[" * 100_000, "deep.json"),
        (b"\xff\xfe", "odd.csv"),
        (b'{"a": ' * 50_000, "deep.jsonl"),
        (b"PK\x05\x06", "odd.xlsx"),
    ],
)
def test_a_file_that_no_reader_can_take_is_no_reason_to_refuse_a_request(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    with ScriptedModel([plans("fine.", to="User")]) as model, Session([Planner(model, [])]) as session:
        assert session.ask("what is it?", files=[tmp_path / name]).text == "fine."
