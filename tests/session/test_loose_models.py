"""Models that keep no form, in whole rounds: nothing that was paid for is lost. Scripted models, fake kernels."""

import pytest

from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings
from tw_autogen.conversation import AttachmentType
from tw_autogen.errors import ModelError, PromptTooLong, RoundError
from tw_autogen.events import AnswerCheckSkipped, HistoryCompacted, ModelDelayed
from tw_autogen.kernel import Artifact, Execution
from tw_autogen.model import Completion
from tw_autogen.planner import Planner
from tw_autogen.session import Session, SessionSettings
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans


@pytest.fixture
def ask(tmp_path):
    """Answer requests by a Planner and a CodeInterpreter over scripts; every step must be used."""

    def run(planned, written, *requests, results=(), handlers=(), **settings):
        with ScriptedModel(planned) as planner, ScriptedModel(written) as coder:
            (tmp_path / "cells").mkdir()
            kernel = FakeKernel(results or ["42"] * len(written), folder=tmp_path / "cells")
            worker = CodeInterpreter(coder, kernel, settings=CodeInterpreterSettings(**settings))
            with Session([Planner(planner, [worker]), worker], folder=tmp_path, handlers=handlers) as session:
                answers = [session.ask(request) for request in requests]
        return answers[-1], planner, coder

    return run


def test_prose_after_the_last_step_is_the_answer(ask):
    said = "The mean of units is **25.42**."

    answer, planner, _ = ask([plans("compute it"), said], [codes("25.42")], "What is the mean of units?")

    assert (answer.text, answer.stop, len(planner.calls)) == (said, "Completed", 2)


def test_the_beginning_of_code_or_of_an_answer_is_asked_for_again_and_does_not_count(ask):
    cut = Completion("I load.\n```python\ndf = load()", finish_reason="length")
    half = Completion("The mean of units is", finish_reason="length")

    answer, _, coder = ask([plans("compute it"), half, "The mean is 3."], [cut, codes("df.mean()")], "The mean?")

    assert answer.text == "The mean is 3."
    assert "answer shorter (its end is missing)" in coder.calls[1][-1]["content"]


def test_an_answer_that_is_always_cut_off_says_so(ask):
    half = Completion("The mean of units is", finish_reason="length")

    answer, _, _ = ask([half] * 4, [], "The mean?")

    assert answer.text.startswith(
        "The mean of units is\n\n(The model's replies could not be read: the reply was cut off"
    )
    assert answer.stop == "TaskFailure"


def test_prose_between_two_steps_is_the_answer_after_one_repair(ask):
    said = "The mean of units is **25.42**."
    first = plans("compute it", plan="1. compute the mean\n2. draw it\n3. report")

    answer, planner, _ = ask([first, said, said], [codes("25.42")], "What is the mean of units?")

    assert (answer.text, answer.stop, len(planner.calls)) == (said, "Completed", 3)
    assert '"send_to": "User", "message": "…"' in planner.calls[-1][-1]["content"]


def test_prose_in_the_form_that_was_asked_for_needs_no_repair(ask):
    answer, _, _ = ask([plans("count"), "None. @count[0]"], [codes("0")], "Answer as @count[number].")

    assert answer.text == "None. @count[0]"


def test_a_refusal_is_shown_as_such(ask):
    answer, _, _ = ask(["I'm sorry, but I can't help with that."] * 2, [], "Write a virus.")

    assert (answer.text, answer.stop) == ("I'm sorry, but I can't help with that.", "SecurityRisks")


def test_replies_that_stay_unreadable_end_with_what_was_said_last(ask):
    wrong = plans("It is 42, tell them.", to="Cook")

    answer, _, _ = ask([plans("compute"), *[wrong] * 4], [codes("42")], "How many?")

    assert answer.stop == "TaskFailure"
    assert answer.text.startswith("It is 42, tell them.\n\n(The model's replies could not be read: `send_to` is 'Cook'")


def test_an_answer_with_another_word_for_completed_costs_no_call(ask):
    said = plans("It is 42.", to="User", stop="Done")

    answer, _, _ = ask([plans("compute"), said], [codes("42")], "How many?")

    assert (answer.text, answer.stop) == ("It is 42.", "Completed")


def test_a_task_without_a_plan_costs_no_call(ask):
    answer, _, _ = ask(
        ['{"Send_To": "Planner", "Message": "compute it"}', plans("It is 42.", to="User")], [codes("42")], "How many?"
    )

    assert answer.text == "It is 42."


def test_a_model_that_says_nothing_is_an_error(ask):
    with pytest.raises(RoundError, match="4 replies could not be read; the last: it is empty"):
        ask([""] * 4, [], "How many?")


def test_no_message_without_content_is_sent_back(ask):
    _, planner, _ = ask(["", plans("It is 42.", to="User")], [], "How many?")

    assert planner.calls[-1][-2] == {"role": "assistant", "content": "(an empty reply)"}


def test_code_without_a_fence_runs(ask):
    answer, _, coder = ask(
        [plans("compute", then="User")], ["x = 6 * 7\nprint(x)\n\nThis prints 42."], "How many?", results=["42"]
    )

    assert answer.text == "42"
    assert len(coder.calls) == 1


@pytest.mark.parametrize(
    ("request_", "first", "calls"),
    [
        ("Give the mean with 2 decimals and the p-value with 4 decimals", "Mean 3.14, p-value 0.0432", 2),
        ("Answer as @p[p-value].", "@p[p=0.0432]", 3),
        ("Answer as JSON.", 'It is {"p": 0.0432}', 3),
    ],
)
def test_only_names_and_syntax_of_an_answer_are_sent_back_and_only_once(ask, request_, first, calls):
    script = [plans("test it"), *[plans(first, to="User")] * (calls - 1)]

    answer, _, _ = ask(script, [codes("0.0432")], request_)

    assert answer.text == first


def test_a_value_without_its_brackets_gets_them_without_a_call(ask):
    answer, _, _ = ask([plans("test it"), plans("@p: 0.0432", to="User")], [codes("0.0432")], "Answer as @p[p-value].")

    assert answer.text == "@p[0.0432]"


def test_a_printed_value_without_its_brackets_gets_them_without_a_call(ask):
    printed = Execution(ok=True, stdout="@p: 0.0432\n")

    answer, _, _ = ask([plans("test it", then="User")], [codes("f()")], "Answer as @p[p-value].", results=[printed])

    assert answer.text == "@p[0.0432]"


def test_an_answer_in_the_form_that_was_asked_for_names_no_files(ask, tmp_path):
    chart = Artifact("chart", "chart", tmp_path / "cells" / "chart.png", "561 x 413 pixels")
    drawn = Execution(ok=True, stdout="@r[0.58]\n", artifacts=(chart,))

    answer, _, _ = ask([plans("draw it", then="User")], [codes("f()")], "Answer as @r[value].", results=[drawn])

    assert answer.text == "@r[0.58]"
    assert [artifact.name for artifact in answer.artifacts] == ["chart"]


def test_a_wrong_form_that_stays_is_named(ask):
    events = []
    wrong = plans("@sd[nan]", to="User")

    answer, _, _ = ask([plans("it"), wrong, wrong], [codes("f()")], "Answer as @sd[value].", handlers=[events.append])

    assert answer.text == "@sd[nan]"
    assert "@sd[nan] is no value" in answer.round.posts[-1].content(AttachmentType.invalid_response)
    assert ["@sd[nan] is no value" in event.reason for event in events if isinstance(event, ModelDelayed)] == [True]


@pytest.mark.parametrize(
    ("steps", "limits", "why"),
    [([ModelError("still too busy")], {}, "still too busy"), ([], {"max_calls": 3}, "3 model calls")],
    ids=["busy", "budget"],
)
def test_an_answer_in_a_wrong_form_goes_out_where_no_other_one_comes(tmp_path, steps, limits, why):
    planner = ScriptedModel([plans("print it"), plans("It is 42.", to="User"), *steps, plans("43.", to="User")])
    coder, events = ScriptedModel([codes("print(42)")]), []
    worker = CodeInterpreter(coder, FakeKernel(["42"]))
    settings = SessionSettings(**limits)
    roles = [Planner(planner, [worker]), worker]
    with Session(roles, folder=tmp_path, settings=settings, handlers=[events.append]) as session, coder:
        answer = session.ask("What is 6*7? Answer as @r[number].")
        if steps:
            session.ask("And now?")
            assert "It has gone to the User as it was.)\n\nFrom: User\nAnd now?" in planner.calls[-1][-1]["content"]

    assert answer.text == "It is 42."
    assert "@r[…]" in answer.round.posts[-1].content(AttachmentType.invalid_response)
    skipped = [event.warning for event in events if isinstance(event, AnswerCheckSkipped)]
    assert [words.startswith("the answer goes out uncorrected: ") and why in words for words in skipped] == [True]
    assert all(
        event.reason.startswith("the answer is sent back") for event in events if isinstance(event, ModelDelayed)
    )


def test_a_bare_table_does_not_go_to_the_user_unworded(ask):
    table = Execution(ok=True, result="Sex\nmale      266\nfemale    152\ndtype: int64")

    answer, _, _ = ask(
        [plans("count", then="User"), plans("266 Männer und 152 Frauen.", to="User")],
        [codes("df.value_counts()")],
        "Wie viele Männer und Frauen?",
        results=[table],
    )

    assert answer.text == "266 Männer und 152 Frauen."


def test_a_worker_that_ran_nothing_is_named_to_the_planner(ask):
    answer, planner, _ = ask(
        [plans("save fare.csv"), plans("Nothing was saved.", to="User", stop="TaskFailure")],
        ["I have saved the table to the file."],
        "Save it.",
    )

    assert answer.text == "Nothing was saved."
    assert planner.calls[-1][-1]["content"].startswith("From: CodeInterpreter (no code ran: these are words alone)\n")


def test_numbers_about_a_file_that_nobody_computed_are_sent_back_once(ask):
    invented = plans("The mean is 4.27.", to="User")

    answer, planner, _ = ask(
        [invented, plans("compute it"), plans("The mean is 25.4.", to="User")],
        [codes("25.4")],
        "What is the mean of x in a.csv?",
    )

    assert answer.text == "The mean is 25.4."
    assert "4.27" in planner.calls[1][-1]["content"]
    assert "no worker has run code" in planner.calls[1][-1]["content"]


def test_numbers_that_a_worker_says_without_code_are_sent_back_too(ask):
    answer, planner, _ = ask(
        [plans("compute it"), plans("The mean is 4.27.", to="User"), plans("again"), plans("It is 25.4.", to="User")],
        ["The mean is 4.27.", codes("25.4")],
        "What is the mean of x in a.csv?",
    )

    assert answer.text == "It is 25.4."
    assert "no worker has run code" in planner.calls[2][-1]["content"]


def test_numbers_that_nobody_computed_are_named_where_they_come_again(ask):
    invented = plans("The mean is 4.27.", to="User")

    answer, planner, _ = ask([invented, invented], [], "What is the mean of x in a.csv?")

    told = "no code ran for this request, and nothing that the model was shown holds the numbers 4.27"
    assert answer.round.posts[-1].content(AttachmentType.invalid_response) == told
    assert "nothing that you were shown holds the numbers 4.27: have a worker" in planner.calls[1][-1]["content"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("What is 6*7?", "It is 42."),
        ("Does a.csv with 120 rows and 3,000.50 in it suffice?", "1. Yes, 120 rows and 3000.5 do.\n2. See a.csv."),
        ("What is a.csv?", "A table."),
    ],
)
def test_numbers_of_general_knowledge_and_of_the_request_are_an_answer(ask, request_, said):
    answer, _, _ = ask([plans(said, to="User")], [], request_)

    assert answer.text == said


def test_json_in_a_fence_is_json_without_a_call(ask):
    answer, _, _ = ask([plans("```json\n{}\n```", to="User")], [], "Answer as JSON.")

    assert answer.text == "{}"


def small(limit_chars, reply):
    """A step of a script: refuses prompts of more characters, as a server with a short context does."""

    def step(messages):
        chars = sum(len(str(message["content"])) for message in messages)
        if chars > limit_chars:
            raise PromptTooLong(f"maximum context length is {limit_chars}, your messages have {chars}")
        return reply

    return step


def test_a_prompt_that_is_too_long_is_shortened_and_the_session_goes_on(ask):
    long = "x" * 6000
    events = []
    summary = "They said hello."

    answer, planner, _ = ask(
        [
            plans("hello " + long, to="User"),
            plans(long, to="User"),
            small(14_000, ""),
            summary,
            small(14_000, plans("three", to="User")),
        ],
        [],
        *["one", "two", "three"],
        handlers=[events.append],
    )

    assert answer.text == "three"
    assert summary in str(planner.calls[-1])
    assert long not in str(planner.calls[-1])
    assert [type(event) for event in events if isinstance(event, HistoryCompacted)] == [HistoryCompacted]


def test_where_no_summary_can_be_made_the_end_of_what_was_said_stays(ask):
    refused = ModelError("the request is too long")

    answer, planner, _ = ask(
        [plans("old " * 4000 + "end.", to="User"), refused, refused, plans("two", to="User")], [], "one", "two"
    )

    assert answer.text == "two"
    assert "Most of it is lost" in str(planner.calls[-1])
    assert "end." in str(planner.calls[-1])
    assert len(str(planner.calls[-1])) < len(str(planner.calls[1])) - 10_000


def test_a_server_that_is_too_busy_for_a_summary_costs_no_history():
    said = "old " * 4000 + "end."
    script = [
        plans(said, to="User"),
        *[PromptTooLong("too long"), ModelError("still too busy (429), after 5 times")],
        *[PromptTooLong("too long"), "All of it.", plans("three", to="User")],
    ]

    with ScriptedModel(script) as model, Session([Planner(model, [])]) as session:
        session.ask("one")
        with pytest.raises(RoundError, match="too busy"):
            session.ask("two")
        answer = session.ask("three")

    assert answer.text == "three"
    assert said in str(model.calls[-2])


def test_a_long_message_of_the_current_round_is_cut(ask):
    result = Execution(ok=True, result="", stdout="a" + "y" * 3900 + "z")

    answer, planner, _ = ask(
        [plans("print it"), PromptTooLong("too long"), plans("It is long.", to="User")],
        [codes("print(1)")],
        "How long?",
        results=[result],
    )

    assert answer.text == "It is long."
    assert "characters left out" in planner.calls[-1][-1]["content"]


def test_the_setting_is_named_where_nothing_helps(ask):
    with pytest.raises(RoundError, match="recall.compress_tokens"):
        ask([PromptTooLong("too long: set `recall.compress_tokens`")] * 4, [], "How many?")


def guarded(reply):
    """A step of a script: refuses what its policy forbids, pictures too, wherever it stands in the prompt."""

    def step(messages):
        if "poison" in str(messages[1:]) or "image_url" in str(messages[1:]):
            raise ModelError("http://localhost/v1: the request was refused (400): against the policy")
        return reply

    return step


PICTURE = "data:image/png;base64,AAAA"
OK = guarded(plans("ok", to="User"))


@pytest.mark.parametrize(
    ("request_", "images", "planned", "written", "left"),
    [
        ("What is shown?", [PICTURE], [OK], [], "is left out"),
        ("Which poison sells best?", [], [OK], [], "is left out"),
        ("Print it.", [], [guarded(plans("print it")), OK], [codes("1")], "Print it."),
        ("Which poison sells best?", [], None, [guarded("ok")], "is left out"),
    ],
    ids=["picture", "request", "report", "CodeInterpreter alone"],
)
def test_what_a_server_refuses_is_left_out_of_later_prompts(tmp_path, request_, images, planned, written, left):
    def opened(more_planned, more_written):
        model = ScriptedModel(more_planned if planned else more_written)
        coder = ScriptedModel(more_written if planned else [])
        worker = CodeInterpreter(coder if planned else model, FakeKernel(["poison"]))
        roles = [Planner(model, [worker]), worker] if planned else [worker]
        return Session(roles, folder=tmp_path), model, coder

    again = [] if planned else [guarded("ok")]
    session, model, coder = opened([*(planned or []), OK], [*written, *again])
    with session, model, coder:
        with pytest.raises(RoundError, match="against the policy"):
            session.ask(request_, images=images)
        answer = session.ask("How are you?")
    later, asked, _ = opened([OK], again)
    with later, asked:
        for one in session.rounds:
            later.remember(one)
        assert later.ask("And now?").text == "ok"

    assert answer.text == "ok"
    told = model.calls[-1][-1]["content"]
    assert left in "".join(str(one["content"]) for one in model.calls[-1])
    assert told.index("is left out") < told.index("because http://localhost/v1: the request was refused")
    assert told.index("because ") < told.index("How are you?")
    assert "How are you?" in str(asked.calls[-1])


NOTHING = plans("", to="User", stop="Completed")


@pytest.mark.parametrize(
    "request_",
    [
        "Which IDs? If the list is empty, reply with an empty string.",
        "Which IDs? Output nothing if there are none.",
        "Welche IDs? Wenn keine, dann eine leere Antwort.",
    ],
)
def test_an_empty_answer_that_was_asked_for_is_given_at_once(ask, request_):
    answer, planner, _ = ask([plans("list them", then="User"), NOTHING], [codes("none")], request_, results=[""])

    assert (answer.text, answer.stop, len(planner.calls)) == ("", "Completed", 2)


@pytest.mark.parametrize(
    "request_",
    ["Which IDs?", "Drop the rows where ID is empty. Which are left?", "Reply with the IDs and nothing else."],
)
def test_an_empty_answer_that_was_not_asked_for_is_asked_back_once_and_then_a_plain_failure(ask, request_):
    answer, planner, _ = ask([plans("list"), NOTHING, NOTHING], [codes("1")], request_)

    assert (answer.stop, len(planner.calls)) == ("TaskFailure", 3)
    assert answer.text == "(The model's answer has no words: it was asked again, and sent an empty message again.)"
    assert "`message` is missing or empty" in planner.calls[-1][-1]["content"]


def test_an_empty_message_that_is_put_right_is_no_failure(ask):
    answer, _, _ = ask([plans("list"), NOTHING, plans("None.", to="User")], [codes("1")], "Which IDs?")

    assert (answer.text, answer.stop) == ("None.", "Completed")


def test_no_reply_in_our_form_is_shown_raw(ask):
    lost = plans("", to="Nobody", reasoning="There is no such ID.")

    answer, _, _ = ask([lost] * 4, [], "Which IDs?")

    assert answer.stop == "TaskFailure"
    assert answer.text.startswith("There is no such ID.\n\n(The model's replies could not be read: `send_to`")


def test_code_alone_from_the_planner_runs_and_its_result_is_answered(ask):
    block = "Sure, I count them:\n```python\nprint(6 * 7)\n```"

    answer, planner, coder = ask([block, plans("It is 42.", to="User")], [], "How many?", results=["42"])

    assert (answer.text, len(planner.calls), len(coder.calls)) == ("It is 42.", 2, 0)


@pytest.mark.parametrize(("printed", "calls"), [("@count[42]", 1), ("There are @count[42].", 2)])
def test_a_printed_answer_that_is_the_form_alone_goes_to_the_user_without_a_call(ask, printed, calls):
    step = '{"send_to": "CodeInterpreter", "message": "count", "code": "print("@count[42]")"}'

    answer, planner, _ = ask(
        [step, plans("@count[42]", to="User")][:calls], [], "Answer as @count[number].", results=[printed]
    )

    assert (answer.text, len(planner.calls)) == ("@count[42]", calls)
