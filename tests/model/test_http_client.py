import pytest

from tw_autogen.model.http_client import event_data

EVENTS = b'data: {"a": 1}\n\ndata: {"b":\ndata: 2}\r\n\r\n: comment\nevent: x\n\ndata:[DONE]'


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_the_same_however_the_stream_is_cut(size):
    pieces = [EVENTS[at : at + size] for at in range(0, len(EVENTS), size)]

    assert list(event_data(pieces)) == [b'{"a": 1}', b'{"b":\n2}', b"[DONE]"]


def test_a_line_without_an_end_is_an_error_before_it_fills_the_memory():
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield b"data: " + bytes(1 << 20)

    with pytest.raises(ValueError, match="a line of more than 16 MB"):
        list(event_data(endless()))
    assert read < 20
