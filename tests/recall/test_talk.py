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


PICTURE = "data:image/png;base64,AAAA"
IMAGE = {"type": "image_url", "image_url": {"url": PICTURE}}


def text(words):
    return {"type": "text", "text": words}


def test_an_image_joins_the_words_that_wait_for_an_answer_and_later_words_join_the_image():
    talk = Talk("static")
    talk.tell("(That request failed.)")
    talk.tell("look", images=(PICTURE,))
    talk.tell("Today is Monday.")
    talk.answered("a chart")

    assert [message["role"] for message in talk.messages] == ["system", "user", "assistant"]
    assert talk.messages[1]["content"] == [text("(That request failed.)\n\nlook"), IMAGE, text("Today is Monday.")]


def test_words_are_taken_back_from_messages_with_images_too():
    talk = Talk("static")
    talk.tell("one old word", images=(PICTURE,))
    talk.replace("old", "new")

    assert talk.messages[1]["content"] == [text("one new word"), IMAGE]


def test_examples_and_rounds_with_images_are_kept_apart_and_shortened():
    talk = Talk("static")
    talk.tell("example", images=(PICTURE,))
    talk.settle("The examples end here.")
    for number in range(3):
        talk.begin_round(str(number))
        talk.tell(f"question {number}", images=(PICTURE,))
        if number < 2:
            talk.answered(f"answer {number}")

    old = talk.older(0)
    talk.shorten(len(old), "summary")
    talk.answered("answer 2")
    talk.begin_round("3")
    talk.tell("question 3")

    assert [one["content"] for one in old] == [
        [text("question 0"), IMAGE],
        "answer 0",
        [text("question 1"), IMAGE],
        "answer 1",
    ]
    fixed = [text("example"), IMAGE, text("The examples end here.\n\nsummary\n\nquestion 2"), IMAGE]
    assert [one["content"] for one in talk.messages] == ["static", fixed, "answer 2", "question 3"]
    assert talk.older(0)[0]["content"] == [text("summary\n\nquestion 2"), IMAGE]


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
