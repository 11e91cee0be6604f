"""What the host takes from a kernel's messages: signed ones only, each once, whatever else they hold."""

import json
import tracemalloc

import pytest
import zmq
from jupyter_client.session import Session

from tw_autogen.kernel.connection import MessageDecoder, Sender

KEY = b"a key"


@pytest.fixture
def sent():
    """Sign messages as ipykernel does."""
    session = Session(key=KEY, signature_scheme="hmac-sha256")

    def sent(kind, content, parent=None):
        return session.serialize(session.msg(kind, content, parent=parent), ident=b"topic")

    return sent


class Outbox:
    """Stands for a socket."""

    cut = False

    def send(self, parts):
        self.parts = parts


@pytest.mark.parametrize("text", ["print('é 日本 \\x00')", "'" + chr(0xD800) + "'", "x" * 100_000])
def test_what_is_sent_is_signed_and_written_as_jupyter_reads_it(text):
    outbox, session = Outbox(), Session(key=KEY, signature_scheme="hmac-sha256")
    number = Sender(KEY).send(outbox, "execute_request", {"code": text, "silent": False})

    message = session.deserialize(session.feed_identities(outbox.parts)[1])

    assert (message["msg_type"], message["header"]["msg_id"]) == ("execute_request", number)
    assert message["content"] == {"code": text, "silent": False}
    assert message["parent_header"] == message["metadata"] == {}
    assert message["header"]["date"].tzinfo is not None


def test_each_message_that_is_sent_has_a_number_of_its_own_in_one_session():
    outbox, sender, found = Outbox(), Sender(KEY), []
    for _ in range(2):
        sender.send(outbox, "kernel_info_request", {})
        found.append(json.loads(outbox.parts[2]))

    assert found[0]["msg_id"] != found[1]["msg_id"]
    assert {one["session"].encode() for one in found} == {sender.identity}


def test_a_signed_message_is_read(sent):
    parent = {"msg_id": "7", "msg_type": "execute_request", "date": "2024-01-01T00:00:00Z"}
    message = MessageDecoder(KEY).read(sent("stream", {"name": "stdout", "text": "2024-01-01T00:00:00Z é"}, parent))

    assert message["msg_type"] == "stream"
    assert message["parent_header"]["msg_id"] == "7"
    assert message["content"] == {"name": "stdout", "text": "2024-01-01T00:00:00Z é"}


def test_a_message_of_another_signer_or_changed_on_its_way_is_passed_over(sent):
    parts = sent("status", {"execution_state": "idle"})

    assert MessageDecoder(b"another key").read(parts) is None
    for place in range(2, 7):
        changed = [*parts]
        changed[place] = b"{}" if changed[place] != b"{}" else b"{ }"
        assert MessageDecoder(KEY).read(changed) is None
    assert MessageDecoder(KEY).read(parts) is not None


def test_a_message_that_comes_again_is_passed_over(sent):
    reader = MessageDecoder(KEY)
    parts = sent("status", {"execution_state": "idle"})

    assert reader.read(parts) is not None
    assert reader.read(parts) is None
    assert reader.read(sent("status", {"execution_state": "idle"})) is not None


def test_what_has_another_form_is_passed_over(sent):
    session = Session(key=KEY, signature_scheme="hmac-sha256")

    def signed(*parts):
        return [b"<IDS|MSG>", session.sign(parts), *parts]

    header = json.dumps({"msg_type": "status"}).encode()
    for parts in (
        [],
        [b""],
        [b"<IDS|MSG>"],
        [b"<IDS|MSG>", b"", b"{}"],
        signed(b"[]", b"{}", b"{}", b"{}"),
        signed(b'{"msg_type": 1}', b"{}", b"{}", b"{}"),
        signed(header, b"1", b"{}", b"{}"),
        signed(header, b"{}", b"{}", b"null"),
        signed(header, b"{}", b"{}", b"\xff"),
        signed(header, b"{}", b"{}", b"[" * 100_000),
    ):
        assert MessageDecoder(KEY).read(parts) is None
    assert MessageDecoder(KEY).read(signed(header, b"{}", b"{}", b'{"text": "\xff"}'))["content"] == {"text": "\ufffd"}


@pytest.mark.parametrize("which", ["header", "parent", "content"])
def test_a_part_that_would_take_too_much_memory_is_not_read(which):
    session = Session(key=KEY, signature_scheme="hmac-sha256")
    text = json.dumps({"msg_type": "stream", "text": "\U0001f600" + "a" * (33 << 20)}, ensure_ascii=False).encode()
    parts = {"header": b'{"msg_type": "stream"}', "parent": b"{}", "metadata": b"{}", "content": b"{}", which: text}
    signed = [b"<IDS|MSG>", session.sign(list(parts.values())), *parts.values()]
    tracemalloc.start()
    try:
        read = MessageDecoder(KEY).read(signed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (read["content"] == {}) if which == "content" else (read is None)
    assert peak < 1 << 20


def test_over_sockets_it_is_the_same(sent):
    with zmq.Context() as context, context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
        one.bind("inproc://messages")
        other.connect("inproc://messages")
        one.send_multipart(sent("execute_reply", {"status": "ok"}))

        assert MessageDecoder(KEY).read(other.recv_multipart())["content"] == {"status": "ok"}
