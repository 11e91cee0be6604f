"""The history of a role: appended to, never changed."""

import pytest

from tw_autogen.conversation import Memory, Post, Round, RoundState
from tw_autogen.errors import ModelError
from tw_autogen.recall import ChatHistory


def test_what_is_said_before_an_answer_is_one_message():
    history = ChatHistory("static")
    history.append_user("one")
    history.append_user("two")
    history.append_assistant("three")
    history.append_user("four")

    assert [message["role"] for message in history.messages] == ["system", "user", "assistant", "user"]
    assert history.messages[1]["content"] == "one\n\ntwo"


def test_images_go_along_as_parts():
    history = ChatHistory("static")
    history.append_user("look", images=("data:image/png;base64,AAAA",))

    assert history.messages[1]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,AAAA"},
    }


PICTURE = "data:image/png;base64,AAAA"
IMAGE = {"type": "image_url", "image_url": {"url": PICTURE}}


def text(words):
    return {"type": "text", "text": words}


def test_an_image_joins_the_words_that_wait_for_an_answer_and_later_words_join_the_image():
    history = ChatHistory("static")
    history.append_user("(That request failed.)")
    history.append_user("look", images=(PICTURE,))
    history.append_user("Today is Monday.")
    history.append_assistant("a chart")

    assert [message["role"] for message in history.messages] == ["system", "user", "assistant"]
    assert history.messages[1]["content"] == [text("(That request failed.)\n\nlook"), IMAGE, text("Today is Monday.")]


def test_words_are_taken_back_from_messages_with_images_too():
    history = ChatHistory("static")
    history.append_user("one old word", images=(PICTURE,))
    history.replace("old", "new")

    assert history.messages[1]["content"] == [text("one new word"), IMAGE]


def test_examples_and_rounds_with_images_are_kept_apart_and_shortened():
    history = ChatHistory("static")
    history.append_user("example", images=(PICTURE,))
    history.end_examples("The examples end here.")
    for number in range(3):
        history.begin_round(str(number))
        history.append_user(f"question {number}", images=(PICTURE,))
        if number < 2:
            history.append_assistant(f"answer {number}")

    old = history.older_messages(0)
    history.replace_oldest(len(old), "summary")
    history.append_assistant("answer 2")
    history.begin_round("3")
    history.append_user("question 3")

    assert [one["content"] for one in old] == [
        [text("question 0"), IMAGE],
        "answer 0",
        [text("question 1"), IMAGE],
        "answer 1",
    ]
    fixed = [text("example"), IMAGE, text("The examples end here.\n\nsummary\n\nquestion 2"), IMAGE]
    assert [message["content"] for message in history.messages] == ["static", fixed, "answer 2", "question 3"]
    assert history.older_messages(0)[0]["content"] == [text("summary\n\nquestion 2"), IMAGE]


def test_what_is_refused_is_withdrawn_and_examples_and_a_summary_stay():
    history = ChatHistory("static")
    history.append_user("example")
    history.end_examples("The examples end here.")
    refused = ModelError("http://localhost/v1: the request was refused (422): no images")
    told = []
    for number in range(3):
        history.begin_round(str(number))
        history.append_user(f"question {number}", images=(PICTURE,))
        if number == 2:
            history.replace_oldest(len(history.older_messages(0)), "summary")
        assert history.withdraw_if_refused(refused)
        told.append(history.messages[-1]["content"])
        history.append_assistant("answer")

    left = (
        "(What was said here is left out, as the model's server refuses it. If it is needed, have it said otherwise.)"
    )
    front = "example\n\nThe examples end here."
    assert told == [f"{front}\n\n{left}", left, f"{front}\n\nsummary\n\n{left}"]


@pytest.mark.parametrize(
    ("refusals", "answers_between", "told"), [(2, False, True), (3, False, False), (3, True, True)]
)
def test_notes_come_again_after_a_refusal_unless_they_may_be_what_is_refused(refusals, answers_between, told):
    note = f"The User's own folder is /home/anna. {'Code can read it. ' * 20}".strip()
    asked = Round("sums", posts=[Post("User", "Planner", f"sums\n\n{note}")])
    history = ChatHistory("static")
    for _ in range(refusals):
        history.append_user(history.without_repeated_notes(asked.posts[0], [asked]))
        history.withdraw_if_refused(ModelError("the request was refused (400): policy"))
        history.repeat_notes()
        if answers_between:
            history.append_assistant("answer")
            history.track_prompt_tokens(0)

    assert (note in str(history.messages)) == told


@pytest.mark.parametrize(
    "words",
    [
        "no connection",
        "the key was refused (403)",
        "the request was refused (413)",
        *(
            f"the request was refused (400): {why}"
            for why in (
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
                "The model has crashed without additional information. (Exit code: 18446744072635812000)",
                "Model unloaded.",
                "Unsupported value: 'temperature' does not support 0.2 with this model.",
                "API key not valid. Please pass a valid API key.",
            )
        ),
    ],
)
def test_what_failed_for_another_reason_stays(words):
    history = ChatHistory("static")
    history.append_user("question")

    assert not history.withdraw_if_refused(ModelError(words))
    assert history.messages[-1]["content"] == "question"


def test_each_post_and_each_failure_is_news_once_in_order():
    failed = Round("a", posts=[Post("User", "Planner", "first")])
    fresh = Round("b", posts=[Post("User", "Planner", "second")])
    history = ChatHistory("static")

    first = list(history.unread(Memory.of("Planner", [failed])))
    failed.state, failed.error = RoundState.failed, "no model"
    second = list(history.unread(Memory.of("Planner", [failed, fresh])))

    assert [one.message for one in first] == ["first"]
    assert [one.error if isinstance(one, Round) else one.message for one in second] == ["no model", "second"]
    assert list(history.unread(Memory.of("Planner", [failed, fresh]))) == []


def test_what_was_not_appended_is_news_again():
    memory = Memory.of(
        "Planner", [Round("a", posts=[Post("User", "Planner", "first"), Post("User", "Planner", "2nd")])]
    )
    history = ChatHistory("static")

    def append(fails_at):
        for new in history.unread(memory):
            if new.message == fails_at:
                raise ValueError("nothing fits")
            history.append_user(new.message)

    with pytest.raises(ValueError, match="nothing fits"):
        append("2nd")
    append("")

    assert history.messages[1]["content"] == "first\n\n2nd"


def test_a_post_of_ones_own_is_no_news():
    mine = Post("Planner", "User", "answer")
    history = ChatHistory("static")
    history.mark_read(mine)

    assert list(history.unread(Memory.of("Planner", [Round("q", posts=[mine])]))) == []


@pytest.mark.parametrize(
    ("counted", "limit"),
    [
        ([1000, 2000, 3000, 3900, 3979, 3979, 3980], 3979),
        ([1000, 2000, 3000, 3900, 4900, 5900, 6900], 0),
        ([1000, 2000, 3000, 2900, 3900, 4900, 5900], 0),  # another server of the same name
        ([1000, 2000, 3000, 120, 110, 115, 118], 0),  # of cached prompts only what is new
        ([1000, 2000, 0, 0, 0, 0, 0], 0),
    ],
)
def test_a_server_that_cuts_prompts_is_known_by_tokens_that_no_longer_grow(counted, limit):
    history = ChatHistory("static")
    found = []
    for tokens in counted:
        history.append_user("word " * 800)
        history.append_assistant("ok")
        found.append(history.track_prompt_tokens(tokens))

    assert [one for one in found if one] == [limit] * bool(limit)
    assert history.max_tokens == round(0.9 * limit)
    if limit:
        assert history.tokens > 6000


def test_a_prompt_with_images_or_one_that_was_shortened_is_not_taken_for_cut():
    history = ChatHistory("static")
    for number in range(6):
        history.begin_round(str(number))
        history.append_user("word " * 800, images=(PICTURE,) if number > 2 else ())
        history.append_assistant("ok")
        assert history.track_prompt_tokens(1000) == 0
        if number == 1:
            history.replace_oldest(len(history.older_messages(0)), "summary")
