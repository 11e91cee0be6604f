"""A talk that grows too long: its older rounds become a summary, the newer ones stay."""

import pytest

from tw_autogen.conversation import Memory, Post, Round
from tw_autogen.errors import ModelError
from tw_autogen.recall import Talk, compress
from tw_autogen.testing import ScriptedModel


def talk_of(rounds, *, words=400):
    talk = Talk("static")
    for number in range(rounds):
        talk.begin_round(str(number))
        talk.tell(f"question {number} " + "x" * words)
        if number < rounds - 1:
            talk.answered(f"answer {number}")
    return talk


def contents(talk):
    return [message["content"] for message in talk.messages]


def test_older_rounds_become_a_summary_and_the_rest_stays_word_for_word():
    talk = talk_of(5)
    kept = contents(talk)[5:]
    with ScriptedModel(["They asked four things."]) as model:
        assert compress(talk, model, tokens=300, keep_rounds=1)

    assert "question 2" in model.calls[0][1]["content"]
    assert "answer 2" in model.calls[0][1]["content"]
    assert "question 3" not in model.calls[0][1]["content"]
    assert contents(talk)[0] == "static"
    assert contents(talk)[1].startswith("# What was said before, in short\nThey asked four things.\n\nquestion 3 ")
    assert contents(talk)[2:] == [*kept[3:]] == ["answer 3", kept[4]]
    assert [message["role"] for message in talk.messages] == ["system", "user", "assistant", "user"]


def test_a_summary_is_summarized_in_its_turn():
    talk = talk_of(4)
    with ScriptedModel(["first summary", "second summary"]) as model:
        compress(talk, model, tokens=200, keep_rounds=1)
        talk.answered("answer 3")
        for number in (4, 5):
            talk.begin_round(str(number))
            talk.tell(f"question {number} " + "x" * 400)
            talk.answered(f"answer {number}")
        talk.begin_round("6")
        talk.tell("question 6")
        compress(talk, model, tokens=200, keep_rounds=1)

    assert "first summary" in model.calls[1][1]["content"]
    assert "question 2" in model.calls[1][1]["content"]
    assert contents(talk)[1].startswith("# What was said before, in short\nsecond summary\n\nquestion 5 ")


def test_examples_are_never_summarized():
    talk = Talk("static")
    talk.tell("example " + "x" * 4000)
    talk.answered("as the example shows")
    talk.settle("The examples end here.")
    talk.begin_round("0")
    talk.tell("question")

    with ScriptedModel([]) as model:
        assert not compress(talk, model, tokens=100, keep_rounds=0)
    assert contents(talk)[2:] == ["as the example shows", "The examples end here.\n\nquestion"]


@pytest.mark.parametrize(("tokens", "rounds"), [(0, 9), (9000, 9), (300, 2)])
def test_what_is_short_or_new_stays_as_it_is(tokens, rounds):
    talk = talk_of(rounds)
    before = contents(talk)

    with ScriptedModel([]) as model:
        assert not compress(talk, model, tokens=tokens, keep_rounds=1)
    assert contents(talk) == before


@pytest.mark.parametrize("last_of_example", ["user", "assistant"])
def test_what_ends_the_examples_stays_and_users_and_assistants_words_alternate(last_of_example):
    talk = Talk("static")
    talk.tell("example")
    talk.answered("as the example shows")
    if last_of_example == "user":
        talk.tell("what came of it")
    talk.settle("The examples end here.")
    for number in range(4):
        talk.begin_round(str(number))
        talk.tell(f"question {number} " + "x" * 400)
        talk.answered(f"answer {number}")
    talk.begin_round("4")
    talk.tell("question 4")

    with ScriptedModel(["summary", "second summary"]) as model:
        assert compress(talk, model, tokens=200, keep_rounds=1)
        assert compress(talk, model, tokens=10, keep_rounds=0)

    for told in model.calls:
        assert "examples end" not in told[1]["content"]
        assert "question 4" not in told[1]["content"]
    assert "question 0" in model.calls[0][1]["content"]
    assert "question 3" in model.calls[1][1]["content"]
    roles = [message["role"] for message in talk.messages]
    assert roles == ["system", "user", "assistant", "user"]
    end = "# What was said before, in short\nsecond summary\n\nquestion 4"
    assert contents(talk)[3].endswith(f"The examples end here.\n\n{end}")


def test_a_task_that_comes_after_the_summary_is_no_part_of_what_is_summarized_next():
    talk = talk_of(3)
    talk.answered("answer 2")
    talk.begin_round("now")
    with ScriptedModel(["summary"]) as model:
        compress(talk, model, tokens=100, keep_rounds=0)
        talk.tell("what is asked now " + "x" * 900)
        talk.answered("a step")
        talk.tell("go on")
        assert not compress(talk, model, tokens=100, keep_rounds=0)

    assert "what is asked now" in contents(talk)[1]


def test_the_rounds_of_a_chat_that_is_resumed_are_older_ones():
    rounds = [
        Round(f"q{number}", posts=[Post("User", "Planner", f"question {number} {'x' * 400}")]) for number in (1, 2, 3)
    ]
    talk = Talk("static")
    for post in talk.news(Memory.of("Planner", rounds)):
        talk.tell(post.message)
        talk.answered("answer")

    with ScriptedModel(["summary"]) as model:
        assert compress(talk, model, tokens=100, keep_rounds=1)
    assert "question 1" in model.calls[0][1]["content"]
    assert "question 2" not in model.calls[0][1]["content"]


def test_where_nobody_can_be_asked_the_talk_stays_as_it_is():
    talk = talk_of(5)
    before = contents(talk)

    with ScriptedModel([ModelError("no server")]) as model, pytest.raises(ModelError):
        compress(talk, model, tokens=300, keep_rounds=1)
    assert contents(talk) == before


def test_tokens_are_reckoned_by_what_the_server_has_counted():
    talk = Talk("x" * 1000)
    talk.tell("y" * 1000)
    assert talk.tokens == 500

    talk.answered("z")
    talk.measured(1000)

    assert talk.tokens == 1000
