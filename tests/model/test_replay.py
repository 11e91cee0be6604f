"""Recording replies, replaying them, and saying where a recording and a run have parted."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tw_autogen.errors import ModelError, ReplayParted, ScenarioError
from tw_autogen.model import ChatModel, Completion, Recording, RecordingModel, ReplayModel, ToolCall, Usage, asked_as
from tw_autogen.testing import ScriptedModel

NASTY = [
    "plain",
    "",
    "two\nlines",
    "ends with a line break\n\n",
    "\nstarts with one",
    "   indented\n  less",
    "trailing space \nin a line",
    "tab\tand\r\nWindows",
    '{"json": "yes", "n": [1, 2]}',
    "# no comment\n- no: list\n--- \n...",
    "café 日本 😀 \u2028 separator \x85 \ufeff mark",
    "a\x85b\u2028\u2029\x85\nc",
    "null",
    "'quotes' \"both\" `ticks`\n```python\nx = {'a': 1}\n```\n",
]


def asked(*texts):
    return [{"role": "user", "content": text} for text in texts]


def record(path, *replies):
    """Record one call a reply; each asks for its own number."""
    model = RecordingModel(ScriptedModel(list(replies)), path)
    for number in range(len(replies)):
        model.complete(asked(f"question {number}"))
    return path


def test_what_was_recorded_is_replayed_word_for_word(tmp_path):
    whole = Completion(
        "It is 42.", (ToolCall("c1", "look", '{"at": 1}'),), Usage(120, 64, 9, 1), "tool_calls", "tiny-1"
    )
    path = record(tmp_path / "deep" / "replies.yaml", whole, *NASTY)
    replay = ReplayModel(path)

    assert isinstance(replay, ChatModel)
    assert replay.complete(asked("question 0")) == whole
    for number, text in enumerate(NASTY, start=1):
        assert replay.complete(asked(f"question {number}")).text == text
    assert replay.stale == []
    assert replay.unused == ()


def test_the_file_reads_well_in_a_diff(tmp_path):
    path = record(
        tmp_path / "replies.yaml", Completion("Let me see.\nIt is 42.", usage=Usage(120, 64, 9, 1), model="tiny-1")
    )
    lines = path.read_text(encoding="utf-8").splitlines()

    assert lines[:2] == ["format: 1", "model: tiny-1"]
    assert lines[2].startswith("date: '20")
    assert lines[3:5] == ["replies:", f"- prompt: {Recording.read(path).replies[0].prompt}"]
    assert lines[5:] == [
        "  last: 'user: question 0'",
        "  reply: |-",
        "    Let me see.",
        "    It is 42.",
        "  usage: {prompt: 120, cached: 64, completion: 9}",
        "  finish_reason: stop",
        "  model: tiny-1",
    ]


def test_each_call_is_on_disk_before_its_reply_is_handed_on(tmp_path):
    path = tmp_path / "replies.yaml"
    model = RecordingModel(ScriptedModel(["one", "two", ModelError("gone")]), path)
    for number in (1, 2):
        model.complete(asked("x"))
        assert len(Recording.read(path).replies) == number
    with pytest.raises(ModelError, match="gone"):
        model.complete(asked("x"))
    assert len(Recording.read(path).replies) == 2


def test_an_older_recording_survives_until_the_first_reply_and_is_then_replaced(tmp_path):
    path = record(tmp_path / "replies.yaml", "old", "older")
    model = RecordingModel(ScriptedModel([ModelError("gone"), "new"]), path)

    with pytest.raises(ModelError, match="gone"):
        model.complete(asked("x"))
    assert len(Recording.read(path).replies) == 2
    model.complete(asked("x"))
    assert [reply.completion.text for reply in Recording.read(path).replies] == ["new"]


def test_recording_hands_everything_on(tmp_path):
    pieces = []
    scripted = ScriptedModel(["It is 42."])
    model = RecordingModel(scripted, tmp_path / "replies.yaml")
    model.complete(asked("x"), schema={"type": "object"}, tools=[{"type": "function"}], on_text=pieces.append)

    assert "".join(pieces) == "It is 42."
    assert (scripted.schemas, scripted.tools) == ([{"type": "object"}], [[{"type": "function"}]])


def test_the_order_of_keys_does_not_count(tmp_path):
    path = tmp_path / "replies.yaml"
    RecordingModel(ScriptedModel(["hi"]), path).complete([{"role": "user", "content": "x"}])
    replay = ReplayModel(path, strict=True)
    assert replay.complete([{"content": "x", "role": "user"}]).text == "hi"


def test_calls_side_by_side_find_their_own_replies(tmp_path):
    replay = ReplayModel(record(tmp_path / "replies.yaml", *(f"answer {number}" for number in range(40))))
    with ThreadPoolExecutor(8) as threads:
        numbers = list(reversed(range(40)))
        answers = threads.map(lambda number: replay.complete(asked(f"question {number}")).text, numbers)
        assert list(answers) == [f"answer {number}" for number in numbers]
    assert (replay.stale, replay.unused) == ([], ())


def test_a_changed_prompt_is_noted_in_words_and_the_next_reply_is_given(tmp_path):
    replay = ReplayModel(record(tmp_path / "replies.yaml", "zero", "one", "two"))

    assert replay.complete(asked("question 0")).text == "zero"
    assert replay.complete(asked("something else")).text == "one"
    assert replay.complete(asked("changed before", "question 2")).text == "two"
    assert replay.stale == [
        "call 2: recorded after 'user: question 1', asked now after 'user: something else'",
        "call 3: something before its last message, 'user: question 2', is not as it was recorded",
    ]


def test_a_changed_system_message_is_named_in_few_words(tmp_path):
    path = tmp_path / "replies.yaml"
    planner, coder = ([{"role": "system", "content": f"You {verb}."}, *asked("x")] for verb in ("plan", "code"))
    RecordingModel(ScriptedModel(["hi"]), path).complete(planner)
    replay = ReplayModel(path)

    assert replay.complete(coder).text == "hi"
    assert replay.stale == ["call 1: its system message is not as it was recorded"]


def test_a_strict_replay_fails_at_the_first_changed_prompt(tmp_path):
    path = record(tmp_path / "replies.yaml", "zero", "one")
    replay = ReplayModel(path, strict=True)
    replay.complete(asked("question 0"))
    with pytest.raises(
        ReplayParted, match=rf"{path}: the recording and the run have parted at call 2: recorded"
    ) as parted:
        replay.complete(asked("something else"))

    assert parted.value.index == 1
    assert len(replay.unused) == 1


def test_one_call_too_many_says_where_the_two_have_parted(tmp_path):
    replay = ReplayModel(record(tmp_path / "replies.yaml", "zero", "one"))
    replay.complete(asked("question 0"))
    replay.complete(asked("something else"))
    with pytest.raises(ReplayParted, match="parted at call 3: the recording holds 2 replies") as parted:
        replay.complete(asked("one more"))

    assert parted.value.index == 2
    assert "one more was asked for after 'user: one more'" in str(parted.value)
    assert "The first difference was call 2: recorded after 'user: question 1'" in str(parted.value)
    assert "Record it anew" in str(parted.value)


def record_for(path, *roles):
    """Record a call of each of these roles, one after the other; each asks for its own number, and is told it."""
    model = RecordingModel(ScriptedModel([f"{role} {number}" for number, role in enumerate(roles)]), path)
    for number, role in enumerate(roles):
        asked_as(role, model).complete(asked(f"question {number}"))
    return path


def test_a_changed_prompt_gets_the_next_reply_of_the_role_that_asks(tmp_path):
    path = record_for(tmp_path / "replies.yaml", "Planner", "CodeInterpreter", "Planner", "CodeInterpreter")
    replay = ReplayModel(path)
    planner, coder = asked_as("Planner", replay), asked_as("CodeInterpreter", replay)

    assert coder.complete(asked("changed")).text == "CodeInterpreter 1"
    assert coder.complete(asked("question 3")).text == "CodeInterpreter 3"
    assert planner.complete(asked("changed")).text == "Planner 0"
    assert planner.complete(asked("changed too")).text == "Planner 2"
    assert [one.split(":")[0] for one in replay.stale] == [
        "call 1, CodeInterpreter",
        "call 3, Planner",
        "call 4, Planner",
    ]
    assert replay.moved == []


def test_a_role_is_never_given_what_was_recorded_for_another(tmp_path):
    path = record_for(tmp_path / "replies.yaml", "Planner", "CodeInterpreter", "Planner")
    coder = asked_as("CodeInterpreter", ReplayModel(path))
    coder.complete(asked("question 1"))

    with pytest.raises(
        ReplayParted,
        match=r"call 2, CodeInterpreter: the recording holds 1 reply for CodeInterpreter, .* 'user: question 2'\. "
        r"Left over are those for Planner \(2\)\. Record it anew",
    ):
        coder.complete(asked("question 2"))


def test_a_reply_that_is_given_before_its_turn_is_said(tmp_path):
    replay = ReplayModel(record_for(tmp_path / "replies.yaml", "Planner", "CodeInterpreter", "Planner", "Planner"))

    assert asked_as("Planner", replay).complete(asked("question 3")).text == "Planner 3"
    assert asked_as("Planner", replay).complete(asked("question 0")).text == "Planner 0"
    assert replay.moved == ["call 1, Planner: its reply is number 4, and number 1 waits still"]
    assert replay.stale == []


def test_roles_side_by_side_each_get_their_own_replies_in_order_even_if_all_prompts_have_changed(tmp_path):
    roles = [f"Interpreter {number % 4}" for number in range(40)]
    replay = ReplayModel(record_for(tmp_path / "replies.yaml", *roles))

    def talk(role):
        return [asked_as(role, replay).complete(asked(f"changed {number}")).text for number in range(10)]

    with ThreadPoolExecutor(4) as threads:
        said = list(threads.map(talk, roles[:4]))
    assert said == [[f"{role} {number}" for number in range(at, 40, 4)] for at, role in enumerate(roles[:4])]
    assert (len(replay.stale), replay.unused, replay.moved) == (40, (), [])


def test_replies_left_over_are_there_to_be_counted(tmp_path):
    replay = ReplayModel(record(tmp_path / "replies.yaml", "zero", "one", "two"))
    replay.complete(asked("question 1"))
    assert [one.completion.text for one in replay.unused] == ["zero", "two"]


def test_text_comes_in_pieces_for_a_live_display():
    pieces = []
    replay = ReplayModel(Recording.of(["It is 42, as everybody knows."]), delay=0.001)
    replay.complete(asked("x"), on_text=pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == "It is 42, as everybody knows."


def test_a_slow_replay_is_cancelled_in_the_middle():
    cancelled, pieces = threading.Event(), []

    def stop(piece):
        pieces.append(piece)
        cancelled.set()

    replay = ReplayModel(Recording.of(["long " * 100]), delay=30.0)
    early = threading.Timer(0.05, cancelled.set)
    early.start()
    with pytest.raises(ModelError, match="the recording: the call was cancelled"):
        replay.complete(asked("x"), on_text=stop, cancelled=cancelled)
    early.join()
    assert pieces == []
    with pytest.raises(ModelError, match="the call was cancelled"):
        replay.complete(asked("x"), cancelled=cancelled)


def test_images_and_long_messages_are_shortened_in_notes():
    replay = ReplayModel(Recording.of([]))
    content = [
        {"type": "text", "text": "what is this?\n" + "x" * 500},
        {"type": "image_url", "image_url": {"url": "data:"}},
    ]
    with pytest.raises(ReplayParted, match=r"holds 0 replies.*'user: what is this\? x+…'") as parted:
        replay.complete([{"role": "user", "content": content}])
    assert len(str(parted.value)) < 400


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "replies.yaml: there is no such recording"),
        ("a: [", "replies.yaml:.*: not YAML"),
        ("just text", "expected a recording with `format: 1`, found 'str'"),
        ("format: 2\nreplies: []", "expected a recording with `format: 1`, found 2"),
        ("format: 1\nreplies:\n- reply: hi\n- prompt: x", "reply 2: missing key 'reply'"),
        (
            "format: 1\nreplies:\n- {reply: hi, finnish_reason: x}",
            "reply 1: unknown key 'finnish_reason'; did you mean 'finish_r",
        ),
        ("format: 1\nreplies:\n- {reply: hi, usage: {prompt: many}}", "reply 1: invalid literal"),
        ("format: 1\nreplies:\n- hi", "reply 1: "),
        ("format: 1\nreplies:\n- hi", "reply 1: expected `reply: …`, found str"),
        ("format: 1\nreplies: hi", "reply 1: expected `reply: …`, found str"),
        ("format: 1\nreplies: 42", "reply 1: expected `reply: …`, found int"),
        *(
            (f"format: 1\nreplies:\n- reply: {one}", "reply 1: `reply`: expected text, found .*; put it in quotes")
            for one in ("", "No", "3.10", "{send_to: User}")
        ),
    ],
)
def test_a_file_that_is_no_recording_says_what_is_wrong_in_it(tmp_path, text, problem):
    path = tmp_path / "replies.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=problem) as wrong:
        ReplayModel(path)
    assert wrong.value.path == path


def test_a_recording_written_by_hand_needs_replies_only(tmp_path):
    path = tmp_path / "replies.yaml"
    for keys in ("", "  role:\n  prompt:\n  system:\n  finish_reason:\n  model:\n"):
        path.write_text(f"format: 1\nmodel:\nreplies:\n- reply: hi\n{keys}", encoding="utf-8")
        model = ReplayModel(path, strict=True)
        assert asked_as("Planner", model).complete(asked("whatever")) == Completion("hi")
        assert model.recording.model == ""
