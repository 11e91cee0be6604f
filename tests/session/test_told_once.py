"""What a session tells of the user's folder and of definitions: once in each role's prompt, and to each role."""

import json

import pytest

from tw_autogen.conversation import AttachmentType
from tw_autogen.model import Completion
from tw_autogen.session import AnswerFiles, open_session
from tw_autogen.testing import ScriptedModel, codes, plans

NOTE = "Code can read it, but not write there."
SAVED = "they are copied to"
LIST = "Its files, below"
CORE = "From now on core customers are those with 3 orders or more."


class Summarizing(ScriptedModel):
    """Follows its script, and summarizes on the side, without a word of folders."""

    def complete(self, messages, **options):
        if messages[0]["content"].startswith("You keep the memory"):
            return Completion("They talked about sums.")
        return super().complete(messages, **options)


@pytest.fixture
def opened(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "sales.csv").write_text("id,amount\n1,3\n2,5\n", encoding="utf-8")
    (mine / "cities.csv").write_text("id,city\n1,Bern\n", encoding="utf-8")

    def open_with(planner, coder, **more):
        settings = {"session.user_folder": str(mine), "session.profile_folder": "content", **more}
        models = {"Planner": planner, "CodeInterpreter": coder}
        session = open_session(models, folder=tmp_path / "own", settings=settings)
        session.landing = AnswerFiles(mine)
        return session

    return open_with


def prompt(call):
    return "\n".join(str(one["content"]) for one in call)


def test_the_users_folder_is_described_once_in_each_prompt_and_prompts_only_grow(opened):
    work = [plans(f"print {number}", then="User") for number in range(3)]
    with (
        ScriptedModel([*work, plans("Done.", to="User")]) as planner,
        ScriptedModel([codes(f"print({number})") for number in range(3)]) as coder,
        opened(planner, coder) as session,
    ):
        for request in ("Sum of amount in sales.csv?", "And the mean?", "Which cities?", "Thanks."):
            session.ask(request)

    for calls in (planner.calls, coder.calls):
        last = prompt(calls[-1])
        assert [last.count(one) for one in (NOTE, SAVED, LIST, "1,Bern")] == [1, 1, 1, 1]
        for earlier, later in zip(calls, calls[1:], strict=False):
            assert later[: len(earlier)] == earlier or later[: len(earlier) - 1] == earlier[:-1]


@pytest.mark.parametrize(
    ("request_", "said", "files", "calls"),
    [
        ("When was Mozart born?", "In 1756.", (), 1),
        ("What is the total amount?", "It is 4711.", (), 2),
        ("What is the sum in sales.csv?", "It is 4711.", (), 2),
        ("How many lines does it have?", "It has 4711.", ("mine/sales.csv",), 2),
    ],
)
def test_numbers_are_doubted_in_answers_about_files_only(opened, tmp_path, request_, said, files, calls):
    with (
        ScriptedModel([plans(said, to="User")] * calls) as planner,
        opened(planner, ScriptedModel([])) as session,
    ):
        answer = session.ask(request_, [tmp_path / file for file in files])

    problem = answer.round.posts[-1].content(AttachmentType.invalid_response)
    assert ("no code ran for this request" in problem) == (calls == 2)


def test_the_users_own_long_words_are_told_as_often_as_they_are_said(opened):
    long = f"Sum of amount? {'Take care. ' * 30}So.\n\n{'Mind the units. ' * 20}So."
    with ScriptedModel([plans("Done.", to="User")] * 2) as planner, opened(planner, ScriptedModel([])) as session:
        session.ask(long)
        session.ask(long)

    assert prompt(planner.calls[-1]).count(long) == 2


def test_a_summary_that_takes_the_note_on_the_folder_out_does_not_lose_it(opened):
    work = [plans(f"{number} {'y' * 500}", to="User") for number in range(12)]
    with (
        Summarizing(work) as planner,
        opened(planner, ScriptedModel([]), **{"recall.compress_tokens": 2600}) as session,
    ):
        for number in range(12):
            session.ask(f"request {number} {'x' * 900}")

    last = prompt(planner.calls[-1])
    assert "request 0" not in last
    assert last.count(NOTE) == 1


def test_a_file_is_described_again_after_a_summary_that_takes_its_description_out(opened, tmp_path):
    (tmp_path / "given.csv").write_text("canary,n\n1,2\n", encoding="utf-8")
    with (
        Summarizing([plans("y" * 500, to="User")] * 14) as planner,
        opened(planner, ScriptedModel([]), **{"recall.compress_tokens": 2600}) as session,
    ):
        session.ask("What is in it?", files=tmp_path / "given.csv")
        for number in range(12):
            session.ask(f"request {number} {'x' * 900}")
        assert "canary" not in prompt(planner.calls[-1])
        session.ask("And which columns?", files=tmp_path / "given.csv")

    assert "| canary,n" in prompt(planner.calls[-1])


def test_a_folder_of_which_only_the_planner_was_told_is_described_to_the_first_code(opened):
    steps = [plans("Two.", to="User"), plans("sum", then="User"), plans("sum", then="User")]
    with (
        ScriptedModel(steps) as planner,
        ScriptedModel([codes("print(8)")] * 2) as coder,
        opened(planner, coder) as session,
    ):
        session.ask("How many files are there?")
        session.ask("Now the sum.")
        session.ask("Once more.")

    first, second = prompt(coder.calls[0]), prompt(coder.calls[1])
    assert (first.count(LIST), first.count("1,Bern")) == (1, 1)
    assert (second.count(LIST), second.count("1,Bern")) == (1, 1)


def test_a_folder_is_described_to_a_worker_whose_first_task_came_with_its_code(opened):
    steps = [plans("sum", code="print(8)", then="User"), plans("mean", then="User")]
    with (
        ScriptedModel(steps) as planner,
        ScriptedModel([codes("print(4)")]) as coder,
        opened(planner, coder) as session,
    ):
        session.ask("Sum of amount in sales.csv?")
        session.ask("And the mean?")

    told = prompt(coder.calls[0])
    assert [told.count(one) for one in (NOTE, LIST, "1,3")] == [1, 1, 1]


def test_a_role_that_is_addressed_directly_knows_what_the_user_has_defined(opened):
    change = {"do": "set", "name": "core customers", "sentence": CORE, "kind": "rule", "variable": None}
    steps = [json.dumps({**json.loads(plans("Noted.", to="User")), "definitions": [change]})]
    with (
        ScriptedModel(steps) as planner,
        ScriptedModel([codes("print(2)")] * 2) as coder,
        opened(planner, coder) as session,
    ):
        session.ask(CORE)
        for request in ("How many core customers are there?", "And in May?"):
            session.open_round(request, send_to="CodeInterpreter")
            session.step(session.next_role())
            session.close_round()

    assert prompt(coder.calls[0]).count(f"core customers (rule): {CORE}") == 1
    assert f"core customers (rule): {CORE}" in coder.calls[1][-1]["content"]
    assert prompt(coder.calls[1]).count(NOTE) == 1


def test_an_interpreter_without_a_planner_is_told_of_the_folder_once(opened):
    with (
        ScriptedModel([codes("print(8)")] * 3) as coder,
        opened(ScriptedModel([]), coder, **{"session.roles": ["code_interpreter"]}) as session,
    ):
        for request in ("Sum of amount in sales.csv?", "And the mean?", "Which cities?"):
            session.ask(request)

    last = prompt(coder.calls[-1])
    assert [last.count(one) for one in (NOTE, SAVED, LIST)] == [1, 1, 1]
