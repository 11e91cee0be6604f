"""How many sessions of an agent stay open, and which are closed for others; scripted models, no host."""

import threading

from tw_autogen import open_session
from tw_autogen.events import SessionClosed
from tw_autogen.hosts.open_conversations import Conversations
from tw_autogen.hosts.partner_conversation import GivenFiles, Line, PartnerConversation
from tw_autogen.session import read_settings
from tw_autogen.testing import ScriptedModel, plans


class Partner:
    """Someone who talks with the agent."""


def said(conversation, words):
    return conversation.ask([Line(words)], stopped=threading.Event()).text


def test_a_conversation_in_which_a_request_begins_while_others_are_closed_keeps_its_session(tmp_path):
    """Both first ones are too many for a third. While the second is closed, a request begins in the first."""
    asked, gate = threading.Event(), threading.Event()
    answers, threads = [], []

    def reply(messages):
        if "again" in str(messages[-1]):
            asked.set()
            assert gate.wait(30)
        return plans("Fine.", to="User")

    def hear(event):
        if isinstance(event, SessionClosed) and not threads:
            threads.append(threading.Thread(target=lambda: answers.append(said(first, "again"))))
            threads[0].start()
            assert asked.wait(30)

    def conversation(partner):
        def make():
            return open_session(ScriptedModel([reply] * 9), roles="planner", folder=tmp_path, handlers=[hear])

        return PartnerConversation(make, GivenFiles((), read_settings()))

    people = [Partner() for _ in range(3)]
    all_of_them = Conversations(conversation, most_open=1)
    first, second = (all_of_them.of(person) for person in people[:2])
    assert (said(first, "hello"), said(second, "hello")) == ("Fine.", "Fine.")
    session = first.session

    all_of_them.of(people[2])

    assert (second.session, first.session) == (None, session)
    gate.set()
    threads[0].join(30)
    assert answers == ["Fine."]
    all_of_them.limit(first)
    assert len(all_of_them) == 1
    all_of_them.close()
    assert session.closed
