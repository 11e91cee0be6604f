"""What a prompt holds of offers: each line once, and after a shortening those of the newest request."""

from tw_autogen.planner.offers import Offers
from tw_autogen.recall import ChatHistory

TWO = ["Plugins of A:\n- a(x)\n- c(x)", "Plugins of B:\n- d(x)", "Lessons:\n- round"]


def history_of(offers):
    history = ChatHistory("static")
    history.append_user("first" + offers.news(["Plugins of A:\n- a(x)\n- b(x)", "", "Lessons:\n- round"]))
    history.append_assistant("answer")
    history.append_user("second" + offers.news(TWO))
    return history


def test_lines_that_stand_further_up_are_counted():
    history = history_of(Offers())

    assert history.messages[-1]["content"] == (
        "second\n\nPlugins of A:\n- c(x)\n(1 more that fit stand further up.)\n\nPlugins of B:\n- d(x)"
    )


def test_after_a_shortening_all_offers_of_the_newest_request_stand_whole_and_no_others():
    offers = Offers()
    history = history_of(offers)

    offers.restore_in(history)
    once = [message["content"] for message in history.messages]
    offers.restore_in(history)

    assert once == ["static", "first", "answer", "\n\n".join(["second", *TWO])]
    assert [message["content"] for message in history.messages] == once
    assert offers.news(TWO[:1]) == ""


def test_an_offer_that_begins_as_another_one_does_leaves_no_rest_of_it():
    offers, history = Offers(), ChatHistory("static")
    for offer in ("Plugins:\n- a(x)", "Plugins:\n- a(x) for tables"):
        history.append_user("request" + offers.news([offer]))

    offers.news([])
    offers.restore_in(history)

    assert history.messages[-1]["content"] == "request\n\nrequest"
