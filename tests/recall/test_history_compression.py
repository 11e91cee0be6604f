"""A history that grows too long: its older rounds become a summary, the newer ones stay."""

import pytest

from tw_autogen.conversation import Memory, Post, Round
from tw_autogen.errors import ModelError
from tw_autogen.model import Completion
from tw_autogen.recall import ChatHistory
from tw_autogen.recall.recall import compress
from tw_autogen.testing import ScriptedModel


def history_of(rounds, *, words=400):
    history = ChatHistory("static")
    for number in range(rounds):
        history.begin_round(str(number))
        history.append_user(f"question {number} " + "x" * words)
        if number < rounds - 1:
            history.append_assistant(f"answer {number}")
    return history


def contents(history):
    return [message["content"] for message in history.messages]


def test_older_rounds_become_a_summary_and_the_rest_stays_word_for_word():
    history = history_of(5)
    kept = contents(history)[5:]
    with ScriptedModel(["They asked four things."]) as model:
        assert compress(history, model, tokens=300, keep_rounds=1)

    assert "question 2" in model.calls[0][1]["content"]
    assert "answer 2" in model.calls[0][1]["content"]
    assert "question 3" not in model.calls[0][1]["content"]
    assert contents(history)[0] == "static"
    assert contents(history)[1].startswith("# What was said before, in short\nThey asked four things.\n\nquestion 3 ")
    assert contents(history)[2:] == [*kept[3:]] == ["answer 3", kept[4]]
    assert [message["role"] for message in history.messages] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    "first",
    [
        Completion("<think>The user wants a summary. Let me look at the first", finish_reason="length"),
        Completion("The budgets are 0, 1000,", finish_reason="length"),
        Completion("<thinking>They asked four things.</thinking>"),
        Completion("I'm sorry, but I can't help with that."),
    ],
)
def test_what_is_no_whole_summary_is_asked_for_again(first):
    history = history_of(5)
    with ScriptedModel([first, "They asked four things."]) as model:
        assert compress(history, model, tokens=300, keep_rounds=1) == "They asked four things."


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("<thinking>Four.</thinking>\nThey asked four things.", "They asked four things."),
        ("Sorry was said for a wrong mean:\nit is 4.", "Sorry was said for a wrong mean:\nit is 4."),
        ("It ran:\n```python\nx = 1\n```\nx is 1.", "It ran:\n```python\nx = 1\n```\nx is 1."),
    ],
)
def test_a_summary_is_kept_as_it_is_but_for_thoughts(said, kept):
    history = history_of(5)
    with ScriptedModel([said]) as model:
        assert compress(history, model, tokens=300, keep_rounds=1) == kept


def test_a_summary_is_summarized_in_its_turn():
    history = history_of(4)
    with ScriptedModel(["first summary", "second summary"]) as model:
        compress(history, model, tokens=200, keep_rounds=1)
        history.append_assistant("answer 3")
        for number in (4, 5):
            history.begin_round(str(number))
            history.append_user(f"question {number} " + "x" * 400)
            history.append_assistant(f"answer {number}")
        history.begin_round("6")
        history.append_user("question 6")
        compress(history, model, tokens=200, keep_rounds=1)

    assert "first summary" in model.calls[1][1]["content"]
    assert "question 2" in model.calls[1][1]["content"]
    assert contents(history)[1].startswith("# What was said before, in short\nsecond summary\n\nquestion 5 ")


def test_examples_are_never_summarized():
    history = ChatHistory("static")
    history.append_user("example " + "x" * 4000)
    history.append_assistant("as the example shows")
    history.end_examples("The examples end here.")
    history.begin_round("0")
    history.append_user("question")

    with ScriptedModel([]) as model:
        assert not compress(history, model, tokens=100, keep_rounds=0)
    assert contents(history)[2:] == ["as the example shows", "The examples end here.\n\nquestion"]


@pytest.mark.parametrize(("tokens", "rounds"), [(0, 9), (9000, 9), (300, 2)])
def test_what_is_short_or_new_stays_as_it_is(tokens, rounds):
    history = history_of(rounds)
    before = contents(history)

    with ScriptedModel([]) as model:
        assert not compress(history, model, tokens=tokens, keep_rounds=1)
    assert contents(history) == before


@pytest.mark.parametrize("last_of_example", ["user", "assistant"])
def test_what_ends_the_examples_stays_and_users_and_assistants_words_alternate(last_of_example):
    history = ChatHistory("static")
    history.append_user("example")
    history.append_assistant("as the example shows")
    if last_of_example == "user":
        history.append_user("what came of it")
    history.end_examples("The examples end here.")
    for number in range(4):
        history.begin_round(str(number))
        history.append_user(f"question {number} " + "x" * 400)
        history.append_assistant(f"answer {number}")
    history.begin_round("4")
    history.append_user("question 4")

    with ScriptedModel(["summary", "second summary"]) as model:
        assert compress(history, model, tokens=200, keep_rounds=1)
        assert compress(history, model, tokens=10, keep_rounds=0)

    for told in model.calls:
        assert "examples end" not in told[1]["content"]
        assert "question 4" not in told[1]["content"]
    assert "question 0" in model.calls[0][1]["content"]
    assert "question 3" in model.calls[1][1]["content"]
    roles = [message["role"] for message in history.messages]
    assert roles == ["system", "user", "assistant", "user"]
    end = "# What was said before, in short\nsecond summary\n\nquestion 4"
    assert contents(history)[3].endswith(f"The examples end here.\n\n{end}")


def test_a_task_that_comes_after_the_summary_is_no_part_of_what_is_summarized_next():
    history = history_of(3)
    history.append_assistant("answer 2")
    history.begin_round("now")
    with ScriptedModel(["summary"]) as model:
        compress(history, model, tokens=100, keep_rounds=0)
        history.append_user("what is asked now " + "x" * 900)
        history.append_assistant("a step")
        history.append_user("go on")
        assert not compress(history, model, tokens=100, keep_rounds=0)

    assert "what is asked now" in contents(history)[1]


def test_the_rounds_of_a_chat_that_is_resumed_are_older_ones():
    rounds = [
        Round(f"q{number}", posts=[Post("User", "Planner", f"question {number} {'x' * 400}")]) for number in (1, 2, 3)
    ]
    history = ChatHistory("static")
    for post in history.unread(Memory.of("Planner", rounds)):
        history.append_user(post.message)
        history.append_assistant("answer")

    with ScriptedModel(["summary"]) as model:
        assert compress(history, model, tokens=100, keep_rounds=1)
    assert "question 1" in model.calls[0][1]["content"]
    assert "question 2" not in model.calls[0][1]["content"]


def test_where_nobody_can_be_asked_the_talk_stays_as_it_is():
    history = history_of(5)
    before = contents(history)

    with ScriptedModel([ModelError("no server")]) as model, pytest.raises(ModelError):
        compress(history, model, tokens=300, keep_rounds=1)
    assert contents(history) == before


def test_tokens_are_reckoned_by_what_the_server_has_counted():
    history = ChatHistory("x" * 1000)
    history.append_user("y" * 1000)
    assert history.tokens == 500

    history.append_assistant("z")
    history.track_prompt_tokens(1000)

    assert history.tokens == 1000
