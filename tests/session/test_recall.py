"""What sessions recall into prompts and leave for later ones. Real kernel, scripted models."""

import json
import re
import threading

import pytest
import yaml

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.conversation import Post, Round, RoundState
from tw_autogen.errors import (
    ConfigError,
    ConversationFormatError,
    ModelError,
    RoundError,
    RoundInterrupted,
    RoundTooCostly,
    SessionBusyError,
    SessionClosedError,
)
from tw_autogen.events import CompactionFailed, HistoryCompacted
from tw_autogen.kernel import Execution, LocalKernel
from tw_autogen.model import Completion, LexicalRanker
from tw_autogen.planner import Planner
from tw_autogen.plugin import PluginSpec
from tw_autogen.recall import Experience, Recall, RecallSettings, read_experiences
from tw_autogen.recall.conversation_files import Conversation
from tw_autogen.recall.examples import Example
from tw_autogen.recall.experiences import write_experience
from tw_autogen.role import Role
from tw_autogen.session import Session, SessionSettings, compact_session, open_session, read_journal, rounds_of
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans


@pytest.fixture(scope="module")
def kernel():
    with LocalKernel() as kernel:
        yield kernel


@pytest.fixture
def ask(kernel, tmp_path):
    """Open a session over two scripts, and ask; give the models."""
    opened = []

    def open_and_ask(requests, plan_steps, code_steps=(), plugins=(), **settings):
        models = {"Planner": ScriptedModel(plan_steps), "CodeInterpreter": ScriptedModel(code_steps)}
        keys = {key.replace("__", "."): value for key, value in settings.items()}
        session = open_session(models, kernel=kernel, folder=tmp_path / "sessions", settings=keys, plugins=plugins)
        opened.append((session, models))
        for request in requests:
            session.ask(request)
        return session, *models.values()

    yield open_and_ask
    for session, models in opened:
        session.close()
        for model in models.values():
            model.__exit__(None, None, None)


def first_lived(ask):
    return ask(["what is 6*7?"], [plans("compute 6*7"), plans("It is 42.", to="User")], [codes("6 * 7")])[0]


def test_a_saved_example_stands_in_the_next_sessions_prompts_as_a_talk(ask, tmp_path):
    session = first_lived(ask)
    session.save_example(tmp_path / "planner" / "a.yaml")
    session.save_example(tmp_path / "code" / "a.yaml", "CodeInterpreter")

    _, planner, coder = ask(
        ["what is 2*3?"],
        [plans("compute 2*3", then="User")],
        [codes("print('It is 6.')")],
        recall__planner_examples=str(tmp_path / "planner"),
        recall__code_examples=str(tmp_path / "code"),
    )

    asked = planner.calls[0]
    assert [one["role"] for one in asked] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "what is 6*7?" in asked[1]["content"]
    assert '"send_to": "CodeInterpreter"' in asked[2]["content"]
    assert asked[5]["content"].startswith("(The examples end here.")
    assert "what is 2*3?" in asked[5]["content"]
    assert [one["role"] for one in coder.calls[0]] == ["system", "user", "assistant", "user"]
    assert "```python\n6 * 7\n```" in coder.calls[0][2]["content"]
    assert "# Task from Planner\ncompute 2*3" in coder.calls[0][3]["content"]

    for model in (planner, coder):
        for earlier, later in zip(model.calls, model.calls[1:], strict=False):
            assert later[: len(earlier)] == earlier


def test_code_of_the_users_own_is_in_no_example(ask, tmp_path):
    session = first_lived(ask)
    session.run_code("print('mine')")
    session.save_example(tmp_path / "code" / "a.yaml", "CodeInterpreter")

    *_, coder = ask(
        ["what is 2*3?"],
        [plans("compute", then="User")],
        [codes("2 * 3")],
        recall__code_examples=str(tmp_path / "code"),
    )

    assert "6 * 7" in coder.calls[0][2]["content"]
    assert "mine" not in str(coder.calls[0])


def test_a_lesson_that_was_mended_is_recalled_as_it_is_now(ask, tmp_path):
    path = tmp_path / "exp_1.yaml"
    path.write_text("exp_id: a\nexperience_text: plot revenue in red\n", encoding="utf-8")
    settings = {"recall__experience": str(tmp_path), "recall__experience_min_score": 0.0}
    hello = plans("Done.", to="User")
    session, planner, _ = ask(["plot revenue"], [hello, hello], **settings)
    path.write_text("exp_id: a\nexperience_text: plot revenue in green\n", encoding="utf-8")

    session.ask("plot revenue again")

    assert "in red" in planner.calls[0][-1]["content"]
    assert "in green" in planner.calls[1][-1]["content"]


def test_a_lesson_that_is_a_link_is_recalled_as_it_is_now(ask, tmp_path):
    lessons, path = tmp_path / "lessons", tmp_path / "kept.yaml"
    lessons.mkdir()
    (lessons / "exp_1.yaml").symlink_to(path)
    (lessons / ".#exp_1.yaml").symlink_to("me@host.1")  # of an editor
    path.write_text("experience_text: plot revenue in red\n", encoding="utf-8")
    settings = {"recall__experience": str(lessons), "recall__experience_min_score": 0.0}
    hello = plans("Done.", to="User")
    session, planner, _ = ask(["plot revenue"], [hello, hello], **settings)
    path.write_text("experience_text: plot revenue in green\n", encoding="utf-8")

    session.ask("plot revenue again")

    assert "in green" in planner.calls[1][-1]["content"]


def test_a_projects_examples_come_first_in_the_prompts(ask, kernel, tmp_path):
    project = tmp_path / "project"
    first_lived(ask).save_example(project / "examples" / "planner_examples" / "a.yaml")
    (project / "taskweaver_config.json").write_text("{}", encoding="utf-8")
    model = ScriptedModel([plans("Hello.", to="User")])

    with model, open_session(model, kernel=kernel, folder=tmp_path / "s", project=project) as session:
        session.ask("hello")

    assert "what is 6*7?" in model.calls[0][1]["content"]


@pytest.mark.parametrize(
    ("image", "shown"),
    [
        ("data:image/png;base64,AAAA", True),
        ("data:/../photo.png", False),
        ("data:image/webp;base64,AAAA", False),
        ("https://a.b/c.png", False),
    ],
)
def test_an_example_shows_only_images_that_are_written_out_in_it(ask, kernel, tmp_path, image, shown):
    project = tmp_path / "project"
    path = first_lived(ask).save_example(project / "examples" / "planner_examples" / "a.yaml")
    plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    plain["rounds"][0]["post_list"][0]["attachment_list"] = [{"type": "image_url", "content": image}]
    path.write_text(yaml.safe_dump(plain), encoding="utf-8")
    (project / "taskweaver_config.json").write_text("{}", encoding="utf-8")
    model = ScriptedModel([plans("Hello.", to="User")])

    with model, open_session(model, kernel=kernel, folder=tmp_path / "s", project=project) as session:
        session.ask("hello")

    assert (image in json.dumps(model.calls[0])) is shown


def test_each_prompt_still_begins_with_the_last_one(ask, tmp_path):
    first_lived(ask).save_example(tmp_path / "examples" / "a.yaml")

    _, planner, coder = ask(
        ["one", "two"],
        [plans("do 1"), plans("1", to="User"), plans("do 2"), plans("2", to="User")],
        [codes("a = 1\na"), codes("b = 2\nb")],
        recall__planner_examples=str(tmp_path / "examples"),
    )

    for model in (planner, coder):
        for earlier, later in zip(model.calls, model.calls[1:], strict=False):
            assert later[: len(earlier)] == earlier


def test_prompts_grow_at_their_end_with_plugins_chosen_lessons_recalled_and_variables_told(ask, tmp_path):
    first_lived(ask).save_example(tmp_path / "code" / "a.yaml", "CodeInterpreter")
    lessons = tmp_path / "lessons"
    for number, words in enumerate(("squares are easy", "cubes are hard"), 1):
        write_experience(Experience(str(number), words), lessons)

    session, planner, coder = ask(
        ["squares of 2", "cubes of 2", "squares and cubes"],
        [one for task in "abc" for one in (plans(f"{task}: squares and cubes"), plans("Done.", to="User"))],
        [codes("a = 4\na"), codes("1 / 0"), codes("b = 8\nb"), codes("del a\nb = 9\nb")],
        recall__code_examples=str(tmp_path / "code"),
        recall__experience=str(lessons),
        recall__experience_min_score=0.0,
        code_interpreter__plugin_chars=400,
        code_interpreter__auto_plugin_selection_topk=1,
        plugins=[
            PluginSpec(f"{word}_{number}", f"Give {word} of numbers.", (), (), connect=lambda context: str)
            for word in ("squares", "cubes", "roots")
            for number in range(4)
        ],
    )

    for model in (planner, coder):
        for earlier, later in zip(model.calls, model.calls[1:], strict=False):
            assert later[: len(earlier)] == earlier
    told = " ".join(one["content"] for one in coder.calls[-1])
    parts = ("squares_0", "# Lessons from", "ariables, new or changed", "(The examples end")
    assert [words for words in parts if words not in told] == []


def test_a_malformed_example_or_lesson_is_told_before_the_first_request(ask, tmp_path):
    (tmp_path / "bad.yaml").write_text("round: 1\n", encoding="utf-8")
    with pytest.raises(ConversationFormatError, match=r"bad\.yaml: unknown key 'round'"):
        ask([], [], recall__planner_examples=str(tmp_path))
    (tmp_path / "exp_1.yaml").write_text("lesson: x\n", encoding="utf-8")
    with pytest.raises(ConversationFormatError, match=r"exp_1\.yaml: unknown key 'lesson'"):
        ask([], [], recall__experience=str(tmp_path))
    with pytest.raises(ConfigError, match="no such folder of experiences"):
        ask([], [], recall__experience=str(tmp_path / "nowhere"))


def test_a_lesson_is_saved_and_recalled_by_both_roles_for_each_request_that_it_fits(ask, tmp_path):
    lessons = tmp_path / "lessons"
    session, planner, _ = ask(
        ["plot the revenue by month"],
        [plans("plot"), plans("Done.", to="User"), '{"lesson": "Months of revenue are written in German."}'],
        [codes("{}['month']"), codes("1")],
    )
    calls = session.usage.calls
    path = session.save_experience(lessons)

    assert session.usage.calls == calls + 1
    assert "KeyError" in planner.calls[-1][1]["content"]
    (lesson,) = read_experiences(lessons)
    assert path.name == f"exp_{lesson.id}.yaml"
    session, planner, coder = ask(
        ["tell me a joke", "sum the revenue of each month"],
        [plans("Ha.", to="User"), plans("sum revenue by month", then="User")],
        [codes("print('42')")],
        recall__experience=str(lessons),
        recall__experience_min_score=0.0,
    )
    words = "# Lessons from earlier work (they may fit or not)\n- Months of revenue are written in German."
    assert words not in planner.calls[0][-1]["content"]
    assert words in planner.calls[1][-1]["content"]
    assert words in coder.calls[0][-1]["content"]
    recalled = [event.role for event in read_journal(session.journal) if type(event).__name__ == "LessonsRecalled"]
    assert recalled == ["Planner", "CodeInterpreter"]


def test_a_lesson_needs_a_folder_and_a_round(ask, tmp_path):
    session, *_ = ask([], [])

    with pytest.raises(ConfigError, match=r"with `recall\.experience`"):
        session.save_experience()
    with pytest.raises(ConfigError, match="no round yet"):
        session.save_experience(tmp_path)


class Summarizing(ScriptedModel):
    """Follows its script, and summarizes where that is asked for."""

    def __init__(self, steps):
        super().__init__(steps)
        self.summarized = []

    def complete(self, messages, **options):
        if not messages[0]["content"].startswith("You keep the memory"):
            return super().complete(messages, **options)
        self.summarized.append(messages[1]["content"])
        return Completion(f"Summary {len(self.summarized)}.")


def test_a_long_session_is_summarized_and_goes_on(kernel, tmp_path):
    planner = Summarizing([plans(f"do {number}", then="User") for number in range(9)])
    coder = Summarizing([codes(f"v{number} = {number}\nprint('ok {number}')") for number in range(9)])
    models = {"Planner": planner, "CodeInterpreter": coder}
    settings = {"recall.compress_tokens": 2600}
    with open_session(models, kernel=kernel, folder=tmp_path, settings=settings) as session, planner, coder:
        answers = [session.ask(f"request {number} {'x' * 1500}").text for number in range(9)]

    assert answers == [f"ok {number}" for number in range(9)]
    assert "request 0" in planner.summarized[0]
    assert "request 8" not in planner.summarized[-1]
    assert "request 7" not in planner.summarized[-1]
    last = planner.calls[-1]
    assert f"Summary {len(planner.summarized)}." in last[1]["content"]
    assert "request 0" not in str(last)
    assert "request 7" in str(last)
    assert "v0: int, 0" in str(coder.calls[-1])
    events = [event for event in read_journal(session.journal) if isinstance(event, HistoryCompacted)]
    assert {event.role for event in events} == {"Planner", "CodeInterpreter"}
    assert all(event.tokens_after < event.tokens_before for event in events)
    assert all(re.fullmatch(r"Summary \d+\.", event.summary) for event in events)


class Offering(Role):
    """A worker with plugins for each request."""

    intro = "works"

    def __init__(self, name):
        self.name = name

    def offer(self, request):
        return f"Plugins of {self.name} that may fit:\n- {self.name}(x): for {request.split(' x')[0]}"


def test_a_prompt_that_was_shortened_holds_all_offers_for_the_current_request(tmp_path):
    planner = Summarizing([plans("Done.", to="User")] * 9)
    workers = [Offering("alpha"), Offering("beta")]
    recall = Recall(RecallSettings(compress_tokens=2600))
    with Session([Planner(planner, workers, recall=recall), *workers], folder=tmp_path) as session, planner:
        for number in range(9):
            session.ask(f"request {number} {'x' * 1500}")

    assert planner.summarized
    for number, call in enumerate(planner.calls):
        assert [call[-1]["content"].count(f"- {worker.name}(x): for request {number}") for worker in workers] == [1, 1]


def lived(number, chars=0):
    question, answer = f"question {number} {'x' * chars}", f"answer {number}"
    posts = [Post("User", "Planner", question), Post("Planner", "User", answer)]
    return Round(question, posts=posts, state=RoundState.finished)


def test_what_was_said_in_an_earlier_process_is_summarized_at_the_first_request(tmp_path):
    planner = Summarizing([plans("Hello.", to="User")])
    settings = {"recall.compress_tokens": 2600}
    with open_session(planner, kernel=FakeKernel(folder=tmp_path), folder=tmp_path, settings=settings) as session:
        for number in range(8):
            session.remember(lived(number, chars=2500))
        session.ask("the next one")

    assert "question 0" in planner.summarized[0]
    assert "question 0" not in str(planner.calls)


class Unsteady(LexicalRanker):
    """Ranks by words, but for the first time: as where a server is away for a moment."""

    failed = False

    def rank(self, query, texts):
        if not self.failed:
            self.failed = True
            raise ModelError("no connection")
        return super().rank(query, texts)


@pytest.mark.parametrize("earlier", [0, 2], ids=["a new session", "resumed"])
@pytest.mark.parametrize("of_interpreter", [False, True], ids=["Planner", "CodeInterpreter alone"])
@pytest.mark.parametrize("recalls", ["lessons", "examples"])
def test_what_fails_while_a_prompt_is_put_together_loses_nothing_that_was_said(
    tmp_path, earlier, of_interpreter, recalls
):
    (tmp_path / "handcrafted_exp_a.yaml").write_text("exp_id: a\nexperience_text: Sales are in euros.\n")
    name = "CodeInterpreter" if of_interpreter else "Planner"
    said = Round("sums of sales", posts=[Post("User", name, "sums of sales")])
    example = Example(tmp_path / "example.yaml", Conversation(rounds=(said,)))
    settings = RecallSettings(experience=str(tmp_path) if recalls == "lessons" else "", example_tokens=example.tokens)
    recall = Recall(settings, (example, example) if recalls == "examples" else (), Unsteady())
    model = ScriptedModel(["Hello."] if of_interpreter else [plans("Hello.", to="User")])
    role = CodeInterpreter(model, FakeKernel(), recall=recall) if of_interpreter else Planner(model, [], recall=recall)
    with Session([role], folder=tmp_path) as session, model:
        for number in range(earlier):
            session.remember(lived(number))
        with pytest.raises(RoundError, match="no connection"):
            session.ask("Compare the sales of north and south.")
        session.ask("Try the sales again.")

    told = "\n".join(one["content"] for one in model.calls[0][1:])
    said = [f"question {number}" for number in range(0 if of_interpreter else earlier)]
    parts = [*said, "Compare the sales of north and south.", "because no connection.", "Try the sales again."]
    assert [told.count(part) for part in parts] == [1] * len(parts)
    assert sorted(parts, key=told.index) == parts
    assert told.count("sums of sales" if recalls == "examples" else "Sales are in euros.") == 1


class Forgetting(Summarizing):
    """Follows its script, and has no summary to give."""

    def complete(self, messages, **options):
        if not messages[0]["content"].startswith("You keep the memory"):
            return super().complete(messages, **options)
        self.summarized.append(len(self.calls))
        raise ModelError("no summary today")


def test_a_summary_that_fails_is_told_once_and_tried_again_three_rounds_later(tmp_path):
    steps = [plans("do it"), plans("Done.", to="User")]
    planner, coder = Forgetting(steps * 8), Summarizing([codes("1")] * 8)
    settings = {"recall.compress_tokens": 2600}
    models = {"Planner": planner, "CodeInterpreter": coder}
    kernel = FakeKernel(lambda code: Execution(ok=True, result="1"), folder=tmp_path)
    with open_session(models, kernel=kernel, folder=tmp_path, settings=settings) as session, planner, coder:
        for number in range(8):
            session.ask(f"request {number} {'x' * 2500}")

    rounds = [asked // 2 for asked in planner.summarized]
    assert len(rounds) >= 2
    assert [later - earlier for earlier, later in zip(rounds, rounds[1:], strict=False)] == [3] * (len(rounds) - 1)
    events = [event for event in read_journal(session.journal) if isinstance(event, CompactionFailed)]
    assert [(event.role, event.error, event.again_in) for event in events] == [
        ("Planner", "no summary today", 3)
    ] * len(rounds)
    assert all("request 0" in str(asked) for asked in planner.calls)


class Dawdling(Summarizing):
    """Follows its script, and summarizes until it is cancelled."""

    def __init__(self, steps):
        super().__init__(steps)
        self.begun = threading.Event()

    def complete(self, messages, *, cancelled=None, **options):
        if not messages[0]["content"].startswith("You keep the memory"):
            return super().complete(messages, **options)
        self.begun.set()
        assert cancelled is not None
        assert cancelled.wait(20), "nobody told the model that the round was interrupted"
        raise ModelError("cancelled")


def test_a_summary_ends_at_once_when_the_round_is_interrupted(tmp_path):
    planner = Dawdling([plans("Hello.", to="User")] * 2)
    settings = {"recall.compress_tokens": 2600}
    with open_session(planner, kernel=FakeKernel(folder=tmp_path), folder=tmp_path, settings=settings) as session:
        stopper = threading.Thread(target=lambda: planner.begun.wait(20) and session.interrupt())
        stopper.start()
        for number in range(2):
            session.ask(f"request {number} {'x' * 5000}")
        with pytest.raises(RoundInterrupted, match="interrupt"):
            session.ask("the third")
        stopper.join(20)

    assert not [event for event in read_journal(session.journal) if isinstance(event, CompactionFailed)]


def test_the_rounds_of_a_journal_are_those_that_were_lived(ask):
    session = first_lived(ask)

    assert [one.to_dict() for one in rounds_of(read_journal(session.journal))] == [
        one.to_dict() for one in session.rounds
    ]


@pytest.mark.parametrize("tokens", [0, -1])
def test_without_a_limit_nothing_is_summarized(ask, tokens):
    hello = plans("Done.", to="User")
    _, planner, _ = ask(["long " * 9000, "more"], [hello, hello], recall__compress_tokens=tokens)

    assert "long long" in str(planner.calls[-1])


def test_the_board_of_a_round_that_was_remembered_is_in_the_journal(ask):
    past = Round("q", posts=[Post("User", "Planner", "q"), Post("Planner", "User", "a")], state=RoundState.finished)
    past.write_board("Planner", "notes")
    session, *_ = ask([], [])
    session.remember(past)

    assert [one.read_board() for one in rounds_of(read_journal(session.journal))] == [{"Planner": "notes"}]


@pytest.mark.parametrize("examples", [True, False])
def test_lessons_lie_where_they_did_when_the_session_opened_with_examples_or_without(
    ask, tmp_path, monkeypatch, examples
):
    (tmp_path / "lessons").mkdir()
    write_experience(Experience("a", "plot revenue in red"), tmp_path / "lessons")
    monkeypatch.chdir(tmp_path)
    settings = {"recall__experience": "lessons", "recall__experience_min_score": 0.0}
    session, planner, _ = ask(
        [],
        [plans("Done.", to="User")],
        recall__use_planner_examples=examples,
        recall__use_code_examples=examples,
        **settings,
    )
    monkeypatch.chdir(tmp_path / "sessions")

    session.ask("plot revenue")

    assert "in red" in planner.calls[0][-1]["content"]


def test_a_session_is_compacted_on_demand_and_says_by_how_much():
    long = "a long tale of what the columns mean. " * 60
    steps = [
        plans(long, to="User"),
        plans("Second.", to="User"),
        "SUMMARY OF ALL",
        plans("Third.", to="User"),
    ]
    with ScriptedModel(steps) as model, Session([Planner(model, [])]) as session:
        session.ask("first?")
        assert compact_session(session) == []
        session.ask("second?")
        (found,) = compact_session(session)
        session.ask("third?")

    assert (found.role, found.summary) == ("Planner", "SUMMARY OF ALL")
    assert 0 < found.tokens_after < found.tokens_before
    prompt = "\n".join(str(one["content"]) for one in model.calls[-1])
    assert "SUMMARY OF ALL" in prompt
    assert long not in prompt
    assert "second?" in prompt


@pytest.mark.parametrize("most", [2, 3])
def test_a_summary_on_demand_counts_towards_the_limits_of_the_session(most):
    steps = [plans("a tale. " * 200, to="User"), plans("Second.", to="User"), *["SUMMARY"] * (most - 2)]
    settings = SessionSettings(max_session_calls=most, max_calls=1)
    with ScriptedModel(steps) as model, Session([Planner(model, [])], settings=settings) as session:
        session.ask("first?")
        session.ask("second?")
        if most == 3:
            assert isinstance(compact_session(session)[0], HistoryCompacted)
            assert session.usage.calls == 3
        with pytest.raises(RoundTooCostly, match="`session.max_session_calls` is"):
            session.ask("third?") if most == 3 else compact_session(session)


@pytest.mark.parametrize("most", [3, 4])
def test_what_a_summary_and_a_lesson_cost_counts_in_a_session_that_is_gone_on_with(tmp_path, most):
    hello, settings = plans("Hello.", to="User"), {"session.max_session_calls": most}
    steps = [plans("a tale. " * 200, to="User"), hello, "SUMMARY", '{"lesson": "Look first."}']
    with ScriptedModel(steps[:most]) as model, open_session(model, roles=["planner"], folder=tmp_path) as session:
        session.ask("first?")
        session.ask("second?")
        compact_session(session)
        if most == 4:
            session.save_experience(tmp_path / "lessons")
    again = open_session(ScriptedModel([]), roles=["planner"], resume=session.journal.parent, settings=settings)
    with again, pytest.raises(RoundTooCostly, match=f"{most} model calls in this session"):
        again.ask("third?")


def test_a_summary_on_demand_waits_for_the_end_of_a_round_and_leaves_its_limits():
    steps = [plans("a tale. " * 200, to="User"), plans("Second.", to="User"), "SUMMARY"]
    settings = SessionSettings(max_calls=1)
    with ScriptedModel(steps) as model, Session([Planner(model, [])], settings=settings) as session:
        session.ask("first?")
        session.open_round("second?")
        session.step(session.next_role())
        with pytest.raises(SessionBusyError, match="a round is open"):
            compact_session(session)
        assert session.close_round().usage.calls == 1
        assert [type(one) for one in compact_session(session)] == [HistoryCompacted]
        session.close()
        with pytest.raises(SessionClosedError, match="is closed"):
            compact_session(session)


def test_a_summary_that_fails_on_demand_leaves_all_as_it_is():
    def fail(messages):
        raise ModelError("no answer came")

    steps = [plans("a tale. " * 200, to="User"), plans("Second.", to="User"), fail, plans("Third.", to="User")]
    with ScriptedModel(steps) as model, Session([Planner(model, [])]) as session:
        session.ask("first?")
        session.ask("second?")
        (found,) = compact_session(session)
        session.ask("third?")

    assert isinstance(found, CompactionFailed)
    assert found.error == "no answer came"
    assert any("a tale. a tale." in str(one["content"]) for one in model.calls[-1])
