"""The Planner's reply: what is understood, and what the model is told when it isn't."""

import json

import pytest

from tw_autogen.conversation import Plan, RequestedFormat
from tw_autogen.errors import Unreadable
from tw_autogen.planner.planner_reply import (
    RetryReplyParser,
    Stop,
    fallback_reply,
    match_name,
    read_reply,
    reply_schema,
)

WORKERS = ["CodeInterpreter", "Echo"]
GOOD = {
    "reasoning": "r",
    "init_plan": "1. add",
    "plan": "1. add",
    "current_plan_step": "1. add",
    "send_to": "CodeInterpreter",
    "message": "add",
    "stop": "InProcess",
}


def read(has_plan=False, worked=False, **changes):
    return read_reply(json.dumps({**GOOD, **changes}), WORKERS, has_plan=has_plan, worked=worked)


def test_a_whole_reply_is_understood():
    reply = read(then="User")

    assert (reply.send_to, reply.message, reply.stop, reply.then) == ("CodeInterpreter", "add", Stop.InProcess, "User")
    assert str(reply.plan) == "1. add"


def test_a_name_is_understood_in_any_case():
    assert read(send_to="codeinterpreter").send_to == "CodeInterpreter"


def test_a_list_of_steps_is_understood():
    assert len(read(plan=["1. add", "2. report"]).plan.steps) == 2


def test_absent_plan_fields_mean_unchanged_once_there_is_a_plan():
    reply = read(has_plan=True, init_plan=None, plan=None, current_plan_step=None)

    assert reply.plan is None
    assert reply.init_plan is None


def test_a_missing_stop_follows_from_the_receiver():
    assert read(stop=None, send_to="User").stop is Stop.Completed
    assert read(stop=None).stop is Stop.InProcess


@pytest.mark.parametrize("said", ["Done", "finished", "success", "END", "complete", "completed.", "Finish"])
def test_another_word_for_completed_is_understood(said):
    assert read(stop=said, send_to="User").stop is Stop.Completed


@pytest.mark.parametrize(
    ("said", "stop"),
    [("failed", Stop.TaskFailure), ("security_risk", Stop.SecurityRisks), ("clarify", Stop.Clarification)],
)
def test_other_words_for_stopping_are_understood(said, stop):
    assert read(stop=said, send_to="User").stop is stop


def test_an_unknown_word_for_stopping_is_asked_about_once_and_then_completes():
    said = json.dumps({**GOOD, "send_to": "User", "message": "It is 42.", "stop": "Bored"})
    read_ = reader()
    with pytest.raises(Unreadable, match="`stop` is 'Bored'"):
        read_(said)

    assert (read_(said).stop, read_(said).message) == (Stop.Completed, "It is 42.")


@pytest.mark.parametrize(
    "fields",
    [
        {"Send_To": "CodeInterpreter", "Message": "add", "Plan": "1. add"},
        {"sendTo": "CodeInterpreter", "message": "add", "plan": "1. add"},
        {"to": "CodeInterpreter", "response": "add", "plan": "1. add"},
        {"recipient": "coder", "content": "add", "initPlan": "1. add"},
    ],
)
def test_fields_are_found_by_other_names(fields):
    reply = read_reply(json.dumps(fields), WORKERS, has_plan=False)

    assert (reply.send_to, reply.message, str(reply.plan)) == ("CodeInterpreter", "add", "1. add")


@pytest.mark.parametrize("said", ["2", "2.", "2)", "2. …"])
def test_the_step_is_read_with_and_without_signs_behind_it(said):
    fields = {"current_plan_step": said, "send_to": "CodeInterpreter", "message": "add"}

    assert read_reply(json.dumps(fields), WORKERS, has_plan=True).current_plan_step.rstrip(")") == "2"


@pytest.mark.parametrize("workers", [["Echo"], ["CodeInterpreter", "Echo"]])
def test_the_message_to_a_worker_is_the_plan_where_none_was_sent(workers):
    reply = read_reply('{"send_to": "Echo", "message": "add\\n them"}', workers, has_plan=False)

    assert (str(reply.plan), reply.current_plan_step) == ("1. add them", "1")


@pytest.mark.parametrize(
    ("workers", "stop", "receiver"),
    [(["Echo"], "InProcess", "Echo"), (["Echo"], None, "Echo"), (["Echo"], "Completed", ""), (WORKERS, None, "")],
)
def test_the_planner_that_writes_to_itself_means_its_only_worker(workers, stop, receiver):
    text = json.dumps({"send_to": "Planner", "message": "add", "plan": "1. add", "stop": stop})
    if receiver:
        assert read_reply(text, workers, has_plan=False).send_to == receiver
    else:
        with pytest.raises(Unreadable, match="nobody here is called that"):
            read_reply(text, workers, has_plan=False)


@pytest.mark.parametrize(
    "plan",
    [
        {"1": "load", "2": "report"},
        {"step 1": "load", "step 2": {"action": "report"}},
        [{"step": 1, "description": "load"}, {"step": 2, "description": "report"}],
        [{"id": "1", "task": "load"}, {"id": "2", "task": "report"}],
        {"steps": [{"step": "load"}, {"step": "report"}]},
        ["load", "report"],
        ["1. load", "2. report"],
        "Step 1: load\nStep 2: report",
        "**Step 1:** load\n**Step 2:** report",
        "Schritt 1: load\nSchritt 2: report",
    ],
)
def test_a_plan_is_understood_in_whatever_shape_it_comes(plan):
    assert str(read(plan=plan).plan) == "1. load\n2. report"


@pytest.mark.parametrize(
    ("message", "request_", "text"),
    [
        ({"text": "It is 42."}, "How many?", "It is 42."),
        ({"mean": 3, "n": 2}, "How many?", "mean: 3\nn: 2"),
        ({"mean": 3}, "Answer as JSON.", '{"mean": 3}'),
        (["a", "b"], "How many?", "a\nb"),
        (42, "How many?", "42"),
    ],
)
def test_a_message_is_understood_in_whatever_shape_it_comes(message, request_, text):
    said = json.dumps({"send_to": "User", "message": message})

    assert reader(request_)(said).message == text


def test_an_answer_without_a_worker_needs_no_plan():
    assert read(send_to="User", stop="Completed", init_plan=None, plan=None).plan is None


def test_then_is_forgotten_in_a_message_to_the_user():
    assert read(send_to="User", stop="Completed", then="User").then == ""


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"send_to": "Cook"}, "`send_to` is 'Cook', and nobody here is called that: write one of CodeInterpreter"),
        ({"send_to": None}, "`send_to` is missing: write one of CodeInterpreter, Echo, User"),
        ({"message": " "}, "`message` is missing or empty"),
        ({"plan": "1. a <sequentially depends on 4>"}, "`plan`: step 1 depends on step 4"),
        ({"send_to": "User", "stop": "InProcess"}, "`stop` is 'InProcess' in a message to the User: write one of Comp"),
        ({"send_to": "User", "stop": "Bored"}, "`stop` is 'Bored' in a message to the User"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_would_be_right(changes, problem):
    with pytest.raises(Unreadable, match=problem):
        read(**changes)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(Unreadable, match=r"`send_to` is missing.*; `message` is missing"):
        read(send_to=None, message=None)


def test_the_schema_names_the_workers_and_the_words_for_stopping():
    fields = reply_schema(WORKERS)["properties"]

    assert fields["send_to"]["enum"] == ["CodeInterpreter", "Echo", "User"]
    assert fields["stop"]["enum"] == [stop.value for stop in Stop]


NAMES = [
    ("coder", ["CodeInterpreter", "User"], "CodeInterpreter"),
    ("code_interpreter", ["CodeInterpreter", "User"], "CodeInterpreter"),
    ("Code Interpreter", ["CodeInterpreter", "User"], "CodeInterpreter"),
    ("the Code-Interpreter", ["CodeInterpreter", "User"], "CodeInterpreter"),
    ("Human", ["CodeInterpreter", "User"], "User"),
    ("the User", ["CodeInterpreter", "User"], "User"),
    ("USER_PROXY", ["CodeInterpreter", "User"], "User"),
    ("web search", ["web_search", "User"], "web_search"),
    ("Coder", ["CodeInterpreter", "Coder", "User"], "Coder"),
    ("coder", ["CodeInterpreter", "Coder_1", "User"], ""),
    ("python", ["CodeInterpreter", "PythonTeacher", "User"], ""),
    ("data 1", ["data_1", "Data1", "User"], ""),
    ("data_1", ["data_1", "Data1", "User"], "data_1"),
    ("coder", ["Echo", "User"], ""),
    ("Cook", ["CodeInterpreter", "User"], ""),
    ("", ["CodeInterpreter", "User"], ""),
    ("the", ["CodeInterpreter", "User"], ""),
    ("_", ["CodeInterpreter", "User"], ""),
]


@pytest.mark.parametrize(("said", "known", "meant"), NAMES)
def test_names_are_read_loosely_but_never_where_two_may_be_meant(said, known, meant):
    assert match_name(said, known) == meant


def test_then_is_read_as_loosely():
    assert read(then="the user").then == "User"


def reader(request="How many?", **options):
    return RetryReplyParser(WORKERS, has_plan=False, form=RequestedFormat.read(request), **options)


def unread(read_, text):
    with pytest.raises(
        Unreadable, match="there is no JSON object|`send_to` is missing|nothing has been done"
    ) as unreadable:
        read_(text)
    return unreadable.value.problem


@pytest.mark.parametrize(("worked", "receiver"), [(False, "CodeInterpreter"), (True, "User")])
def test_what_is_unreadable_is_told_with_a_reply_that_would_be_understood(worked, receiver):
    _, _, example = unread(reader(worked=worked), "It is 42.").partition("The form:\n")

    assert read_reply(example.replace("…", "add"), WORKERS, has_plan=False).send_to == receiver
    with pytest.raises(Unreadable, match="`message` is missing or empty"):
        read_reply(example, WORKERS, has_plan=False)


@pytest.mark.parametrize(
    ("worked", "said", "stop"),
    [
        (True, "The mean of units is **25.42**.", Stop.Completed),
        (True, "CodeInterpreter found 42.", Stop.Completed),
        (False, "Paris is the capital of France.", Stop.Completed),
        (False, "I'm sorry, but I can't help with that.", Stop.SecurityRisks),
        (True, "I cannot tell you that.", Stop.SecurityRisks),
    ],
)
def test_words_are_the_answer_when_they_come_again(worked, said, stop):
    read_ = reader(worked=worked)
    unread(read_, "Let me think.")

    reply = read_(f"<think>hm</think>{said}")

    assert (reply.send_to, reply.message, reply.stop) == ("User", said, stop)


@pytest.mark.parametrize(
    "said", ["The mean is 25.5.", "I'll ask the code interpreter to load it.", "```python\n6 * 7\n```"]
)
def test_words_of_what_is_still_to_be_done_or_made_up_are_no_answer(said):
    read_ = reader()
    for _ in range(3):
        unread(read_, said)


AFTER_WORK = [
    ("The mean is 25.5.", True),
    ("The mean is 25.5. Let me know if you need anything else.", True),
    ("The mean is 25.5. If you need more, I'll be happy to help.", True),
    ("Let me add them up.", False),
    ("I'll now compute the rest.", False),
    ("Which column is meant?", False),
    ("CodeInterpreter should add them up.", False),
    ("```python\n6 * 7\n```", False),
]


@pytest.mark.parametrize(("said", "taken"), AFTER_WORK)
def test_words_are_the_answer_at_once_when_only_the_report_is_left(said, taken):
    read_ = reader(worked=True, only_report_left=True)
    if taken:
        assert (read_(said).send_to, read_(said).message) == ("User", said)
    else:
        unread(read_, said)
    unread(reader(worked=True), said)
    unread(reader(only_report_left=True), said)


@pytest.mark.parametrize(
    ("plan", "current", "left"),
    [
        ("1. add", "1", True),
        ("1. add\n2. report to the User", "1", True),
        ("1. load\n2. compute", "1", False),
        ("1. load\n2. compute\n3. report", "1", False),
        ("1. load\n2. compute\n3. report", "2", True),
        *(
            (f"1. add\n2. {step}", "1", True)
            for step in (
                "report the mean and chart.png to the User",
                "Finally, tell the user which region is best.",
                "Planner answers the User",
                "present the results as a table",
                "give the user the mean",
                "summarize the findings for the user",
                "show results",
                "dem User das Ergebnis mitteilen",
                "Ergebnis ausgeben",
                "Rapporter le résultat",
                "向用户报告结果",
                "Report the value",
                "report what can't be met",
                "Planner reports mean and median",
                "reply to the user",
                "Tell the user",
                "Share the results with the user",
                "Présenter les totaux",
                "Informar al usuario",
                "回复用户",
                "ユーザーに報告する",
            )
        ),
        *(
            (f"1. add\n2. {step}", "1", False)
            for step in (
                "create a PDF report with a chart",
                "write report.xlsx",
                "report.xlsx",
                "compute the present value of the cash flows",
                "present value of the cash flows",
                "send the answer sheet to Anna by mail",
                "report the means as a PDF",
                "report the mean and draw a chart",
                "compute the median and report it",
                "Präsentation mit Diagrammen erstellen",
                "Bericht als PDF erstellen",
                "生成报告",
                "Answered calls per hour: CodeInterpreter computes their mean",
                "Respondents per region: count them",
                "Contestants by country, ranked",
                "Communication costs by month",
                "Reported crimes by district: aggregate",
                "Tellers: join branches with tellers.csv",
                "Answer rates by question: compute the share",
                "Answers of the users: word counts",
                "Informal workers: share by province",
                "Reply times: median by agent",
                "Present participants per session",
                "Report the totals and count outliers",
                "Report the totals: compute them by month",
                "Summarize sessions per user",
                "Give each user a rank",
                "Summarize purchases for the user with most orders",
                "Anzahl der Antworten",
                "Berichte pro Monat zählen",
                "Ergebnis berechnen und ausgeben",
                "Réponses par région",
                "Informe de ventas",
                "Contestaciones por mes",
                "统计报告数量",
                "计算平均值并汇报",
                "平均を計算し、ユーザーに報告する",
            )
        ),
    ],
)
def test_of_a_plan_only_the_report_is_left(plan, current, left):
    assert Plan.parse(plan).at(current).only_report_left is left


PROMISES = [
    "I will compute the mean.",
    "Sure! I'll now load the file.",
    "Let me load it first.",
    "Je vais calculer la moyenne.",
    "Voy a calcular la media.",
    "我将计算平均值。",
    "Ich berechne jetzt den Mittelwert.",
    "Computing the mean now...",
    "Loading the file, please wait.",
]


@pytest.mark.parametrize("said", PROMISES)
def test_a_promise_before_any_work_is_no_answer_until_it_comes_again(said):
    reply = json.dumps({**GOOD, "send_to": "User", "message": said, "stop": "Completed"})
    read_ = reader()

    assert "nothing has been done yet: send that step to" in unread(read_, reply)
    assert read_(reply).message == said


@pytest.mark.parametrize(
    "said",
    [
        "Hello! Let me know what to compute.",
        "Understood: I will always read numbers with a comma.",
        "I'll answer in German.",
        "Let me check: Paris is the capital of France.",
        "I will load it once you have sent the file.",
        "The mean is 4.2. I will compute the rest if you wish.",
        "Reading is good for you.",
        "I can load tables, analyse them and draw charts.",
    ],
)
def test_an_answer_that_promises_no_work_goes_out_at_once(said):
    assert read(send_to="User", message=said, stop="Completed").message == said
    assert read(send_to="User", message="I will compute it.", stop="Completed", worked=True).stop is Stop.Completed


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("您想要哪一列？", True),
        ("أي عمود تقصد؟", True),
        ("Which column do you mean? (a or b)", True),
        ("Which column: a or b?\n\n- a\n- b", True),
        ("What is the mean? It is 4.", False),
        ("What was found?\n- mean: 4\n- max: 9", False),
        ("Is it normal? (p = 0.3)", False),
    ],
)
def test_a_question_is_known_by_its_mark_and_by_what_one_may_choose_from(said, asks):
    reply = json.dumps({**GOOD, "send_to": "User", "message": said, "stop": "InProcess"})

    assert read_reply(reply, WORKERS, has_plan=True, worked=True).stop is (
        Stop.Clarification if asks else Stop.Completed
    )


@pytest.mark.parametrize(
    ("said", "worked", "stop"),
    [
        ("The mean is known. I can't help with more.", True, Stop.Completed),
        ("I'm sorry, but I can't help with that.", False, Stop.SecurityRisks),
        ("I'm sorry, but I can't help with that.", True, Stop.SecurityRisks),
        ("Sorry for the confusion earlier: the mean is known.", False, Stop.Completed),
        ("I can't find a column x; the file has a and b.", False, Stop.Completed),
    ],
)
def test_an_apology_is_a_refusal_only_if_it_denies_help(said, worked, stop):
    read_ = reader(worked=worked)
    unread(read_, said)

    assert read_(said).stop is stop


def test_words_in_the_form_that_was_asked_for_are_the_answer_at_once():
    asked = "Answer as @outlier_count[number]."

    assert (
        reader(asked, worked=True)("There are none: @outlier_count[0]").message == "There are none: @outlier_count[0]"
    )
    assert reader(asked, worked=True)("The count is 0.\n\n@outlier_count: 0").message.endswith("@outlier_count: 0")
    unread(reader(asked, worked=True), "There are none: @outlier_count[number]")
    unread(reader(asked), "I guess @outlier_count[0]")


def test_the_users_json_in_the_place_of_ours_is_the_answer_once_a_worker_has_answered():
    assert reader("Answer as JSON.", worked=True)('```json\n{"mean": 3}\n```').message == '{"mean": 3}'
    assert reader("Answer as JSON.", worked=True)("[1, 2]").message == "[1, 2]"
    unread(reader("Answer as JSON."), '{"mean": 3}')
    unread(reader("How many?", worked=True), '{"mean": 3}')


@pytest.mark.parametrize(
    ("reply", "said"), [('{"send_to": "Cook", "message": "It is 42."}', "It is 42."), ("{a", "{a")]
)
def test_what_was_said_last_is_not_lost(reply, said):
    answer = fallback_reply(reply, "`send_to` is 'Cook'")

    assert (answer.send_to, answer.stop) == ("User", Stop.TaskFailure)
    assert answer.message == f"{said}\n\n(The model's replies could not be read: `send_to` is 'Cook')"


@pytest.mark.parametrize(
    ("said", "receiver"),
    [
        ("code_interpreter", "CodeInterpreter"),
        ("Code Interpreter", "CodeInterpreter"),
        ("CodeInterpreter (Python)", "CodeInterpreter"),
        ("to: CodeInterpreter", "CodeInterpreter"),
        ("CodeInterpreter and Echo", "CodeInterpreter"),
        ("CodeInterpreter, WebExplorer", ""),
        ("Web", ""),
    ],
)
def test_a_receiver_is_found_with_words_around_its_name(said, receiver):
    assert match_name(said, ["CodeInterpreter", "WebExplorer", "User"]) == receiver


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ('{"send_to": "CodeInterpreter", "message": "go", "code": "print(1)"}', "print(1)"),
        ('{"send_to": "CodeInterpreter", "message": "go", "code": ["x = 1", "print(x)"]}', "x = 1\nprint(x)"),
        ('{"send_to": "CodeInterpreter", "message": "go", "code": "```python\\nprint(1)\\n```"}', "print(1)"),
        ('{"send_to": "CodeInterpreter", "code": "print(1)"}', "print(1)"),
        ('{"send_to": "CodeInterpreter", "message": "go"}\nSo:\n```python\nprint(1)\n```\n', "print(1)"),
        ('```json\n{"send_to": "CodeInterpreter", "message": "go"}\n```', ""),
        ('{"send_to": "CodeInterpreter", "message": "go", "code": null}', ""),
        ('{"send_to": "Echo", "message": "go", "code": "print(1)"}', ""),
        ('{"send_to": "User", "message": "Here it is", "code": "print(1)"}', ""),
    ],
)
def test_code_is_read_for_the_worker_that_takes_it(reply, code):
    read_code = read_reply(reply, WORKERS, has_plan=True, coder="CodeInterpreter")

    assert read_code.code == code
    assert read_reply(reply.replace('Interpreter"', 'Interpreter", "message": "go"'), WORKERS, has_plan=True).code == ""


def test_code_with_an_answer_that_nothing_has_run_for_is_a_step_and_what_it_prints_the_answer():
    reply = {
        "reasoning": "r",
        "send_to": "User",
        "message": "The result is below:",
        "code": "print(6 * 7)",
        "stop": "Completed",
    }

    read = read_reply(json.dumps(reply), WORKERS, has_plan=False, coder="CodeInterpreter")
    told = read_reply(json.dumps(reply), WORKERS, has_plan=True, coder="CodeInterpreter")

    assert (read.send_to, read.code, read.then) == ("CodeInterpreter", "print(6 * 7)", "User")
    assert (told.send_to, told.code) == ("User", "")


def test_the_form_of_a_correction_is_accepted_when_code_is_filled_in():
    reader = RetryReplyParser(WORKERS, has_plan=False, coder="CodeInterpreter")
    with pytest.raises(Unreadable) as caught:
        reader("nothing of the kind")
    form = json.loads(str(caught.value)[str(caught.value).index("{") :])

    assert "code" in form
    assert reader(json.dumps({**form, "code": "print(1)"})).code == "print(1)"


CODE_ALONE = {
    "a block": "```python\nprint(1)\n```",
    "words and a block": "Sure! First I load it:\n```python\nprint(1)\n```\nThis prints it.",
    "a block behind a thought": "<think>hm</think>\n```py\nprint(1)\n```",
    "an object": '{"code": "print(1)"}',
    "an object with a plan": '{"reasoning": "load", "plan": "1. load", "code": "print(1)", "then": null}',
    "a call in tags": '<tool_call>{"name": "python", "arguments": {"code": "print(1)"}}</tool_call>',
    "a call with parameters": '{"name": "run_code", "parameters": {"code": "print(1)"}}',
    "a call with arguments as text": '{"name": "python", "arguments": "{\\"code\\": \\"print(1)\\"}"}',
    "a call of a function": '{"type": "function", "function": {"name": "x", "arguments": {"code": "print(1)"}}}',
    "a python tag": "<|python_tag|>print(1)<|eom_id|>",
    "a python tag and a call": '<|python_tag|>{"name": "python", "parameters": {"code": "print(1)"}}<|eot_id|>',
    "code in tags": "<execute>\nprint(1)\n</execute>",
}


@pytest.mark.parametrize("null", ["None", " null", "N/A", False, "false"], ids=str)
def test_a_word_for_null_is_null_in_fields_that_may_be_empty_and_a_message_elsewhere(null):
    empty = {"code": null, "plan": null, "init_plan": null, "current_plan_step": null}
    step = coding()(json.dumps({"send_to": "CodeInterpreter", "message": "add them", **empty}))
    answer = coding(worked=True)(json.dumps({"send_to": "User", "message": "None", **empty}))

    assert (step.code, str(step.plan), step.current_plan_step) == ("", "1. add them", "1")
    assert (answer.message, answer.plan, answer.init_plan) == ("None", None, None)


def coding(request="How many rows has a.csv?", workers=("CodeInterpreter",), **options):
    form = RequestedFormat.read(request)
    return RetryReplyParser(workers, **{"has_plan": False, "form": form, "coder": "CodeInterpreter", **options})


@pytest.mark.parametrize("name", CODE_ALONE)
def test_code_alone_is_a_step_for_the_worker_that_takes_it(name):
    reply = coding()(CODE_ALONE[name])

    assert (reply.send_to, reply.code, reply.stop) == ("CodeInterpreter", "print(1)", Stop.InProcess)
    assert (len(reply.plan.steps), reply.then) == (1, "")
    assert coding(has_plan=True, worked=True)(CODE_ALONE[name]).code == "print(1)"


@pytest.mark.parametrize("name", ["a block", "words and a block", "an object", "a call in tags"])
@pytest.mark.parametrize(
    ("request_", "options"),
    [
        ("Write a function that prints 1.", {}),
        ("How would you count the rows? Don't run it.", {}),
        ("Zeig mir den Code, ohne ihn auszuführen.", {}),
        ("How many?", {"only_coder": False}),
        ("How many?", {"coder": ""}),
    ],
)
def test_code_alone_is_no_step_where_it_may_be_wanted_as_text_or_two_may_be_meant(name, request_, options):
    with pytest.raises(Unreadable, match="there is no JSON object|`send_to` is missing|nobody here is called"):
        coding(request_, **options)(CODE_ALONE[name])


def test_an_answer_that_quotes_code_is_no_step():
    said = (
        f"The mean of units is as follows.{' It was computed from the rows that are there.' * 5}\n```python\nx()\n```"
    )

    with pytest.raises(Unreadable, match="there is no JSON object"):
        coding(worked=True)(said)


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "CodeInterpreter", "arguments": {"message": "count", "stop": "InProcess"}}',
        '{"name": "reply", "parameters": {"send_to": "CodeInterpreter", "message": "count"}}',
        '<tool_call>\n{"name": "send", "arguments": {"to": "coder", "message": "count"}}\n</tool_call>',
    ],
)
def test_a_reply_that_is_sent_as_a_call_is_read(reply):
    read = coding()(reply)

    assert (read.send_to, read.message, read.code) == ("CodeInterpreter", "count", "")


@pytest.mark.parametrize(
    ("message", "worked", "stop"),
    [
        ("Which column do you mean?", False, Stop.Clarification),
        ("There are two prices. Which one?", True, Stop.Clarification),
        ("The mean is 4.2.", True, Stop.Completed),
        ("The mean is 4.2. Would you like a chart?", True, Stop.Completed),
        ("I will now compute the mean.", True, None),
        ("The mean is 4.2.", False, None),
    ],
)
def test_a_message_to_the_user_that_is_in_process_is_a_question_or_after_work_an_answer(message, worked, stop):
    said = json.dumps({"send_to": "User", "message": message, "stop": "InProcess"})
    if stop:
        assert coding(worked=worked)(said).stop is stop
    else:
        with pytest.raises(Unreadable, match="`stop` is 'InProcess' in a message to the User"):
            coding(worked=worked)(said)


def test_dots_of_the_form_are_read_over_and_where_the_message_is_dots_an_example_has_words():
    form = {"reasoning": "…", "plan": "1. …", "current_plan_step": "1", "send_to": "CodeInterpreter", "code": "…"}

    reply = coding()(json.dumps({**form, "message": "count"}))
    with pytest.raises(Unreadable, match="`message` is missing or empty") as unreadable:
        coding()(json.dumps({**form, "message": "…"}))
    with pytest.raises(Unreadable, match="`message` is missing or empty") as answer:
        coding(worked=True)('{"send_to": "User", "message": "…"}')

    assert (str(reply.plan), reply.code, reply.reasoning) == ("1. count", "", "")
    example = unreadable.value.problem.partition("The form:\n")[2]
    assert "…" not in example
    assert coding()(example).send_to == "CodeInterpreter"
    with pytest.raises(Unreadable, match="`message` is missing or empty"):
        coding(worked=True)(answer.value.problem.partition("The form:\n")[2])
