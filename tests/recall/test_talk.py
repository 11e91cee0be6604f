"""The talk of a role: appended to, never changed."""

from tw_autogen.conversation import Memory, Post, Round, RoundState
from tw_autogen.recall import Talk


def test_what_is_said_before_an_answer_is_one_message():
    talk = Talk("static")
    talk.tell("one")
    talk.tell("two")
    talk.answered("three")
    talk.tell("four")

    assert [message["role"] for message in talk.messages] == ["system", "user", "assistant", "user"]
    assert talk.messages[1]["content"] == "one\n\ntwo"


def test_images_go_along_as_parts():
    talk = Talk("static")
    talk.tell("look", images=("data:image/png;base64,AAAA",))

    assert talk.messages[1]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,AAAA"},
    }


def test_each_post_and_each_failure_is_news_once_in_order():
    failed = Round("a", posts=[Post("User", "Planner", "first")])
    fresh = Round("b", posts=[Post("User", "Planner", "second")])
    talk = Talk("static")

    first = list(talk.news(Memory.of("Planner", [failed])))
    failed.state, failed.error = RoundState.failed, "no model"
    second = list(talk.news(Memory.of("Planner", [failed, fresh])))

    assert [one.message for one in first] == ["first"]
    assert [one.error if isinstance(one, Round) else one.message for one in second] == ["no model", "second"]
    assert list(talk.news(Memory.of("Planner", [failed, fresh]))) == []


def test_a_post_of_ones_own_is_no_news():
    mine = Post("Planner", "User", "answer")
    talk = Talk("static")
    talk.saw(mine)

    assert list(talk.news(Memory.of("Planner", [Round("q", posts=[mine])]))) == []
