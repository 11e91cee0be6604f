"""Asking, reading, and asking again with what was wrong."""

import threading

import pytest

from tw_autogen.errors import ModelError, ModelUnreadable, Unreadable
from tw_autogen.model import Completion, ModelRequest, Usage, ask, read_object
from tw_autogen.testing import ScriptedModel


def asked():
    return [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "what is 6*7?"}]


def test_a_readable_reply_is_read_and_kept_as_it_came():
    messages = asked()
    with ScriptedModel(['So: {"message": "42"}']) as model:
        value, completion = ask(model, ModelRequest(messages), read_object)

    assert value == {"message": "42"}
    assert completion.text == 'So: {"message": "42"}'
    assert messages == [*asked(), {"role": "assistant", "content": 'So: {"message": "42"}'}]


def test_thoughts_are_not_sent_again_with_each_later_call():
    messages, read = asked(), []
    with ScriptedModel(["<think>6*7 is 42.</think>\n\nIt is 42.", '[THINK]In JSON.[/THINK]{"message": "42"}']) as model:
        _, completion = ask(model, ModelRequest(messages), lambda text: read.append(text) or read_object(text))

    assert model.calls[1][2] == {"role": "assistant", "content": "It is 42."}
    assert messages[-1] == {"role": "assistant", "content": '{"message": "42"}'}
    assert read == ["It is 42.", '{"message": "42"}']
    assert completion.text == '[THINK]In JSON.[/THINK]{"message": "42"}'


def test_an_unreadable_reply_is_told_what_was_wrong_and_each_prompt_starts_with_the_last():
    messages = asked()
    with ScriptedModel(["It is 42.", '{"message": "42"}']) as model:
        value, _ = ask(model, ModelRequest(messages), read_object)

    assert value == {"message": "42"}
    assert model.calls[1][:2] == model.calls[0] == asked()
    assert model.calls[1][2] == {"role": "assistant", "content": "It is 42."}
    assert model.calls[1][3]["role"] == "user"
    assert "can't be used: there is no JSON object in it; reply with one JSON object" in model.calls[1][3]["content"]
    assert messages[:4] == model.calls[1]


def test_an_unreadable_reply_is_told_to_who_waits():
    told = []
    with ScriptedModel(["It is 42.", '{"message": "42"}']) as model:
        ask(model, ModelRequest(asked(), on_delay=told.append), read_object)

    (one,) = told
    assert one == "reply 1 could not be read: there is no JSON object in it"


def test_after_the_last_try_the_error_holds_the_reply_and_all_problems():
    messages = asked()
    with (
        ScriptedModel(["one", "", '{"message": "cut of']) as model,
        pytest.raises(ModelUnreadable, match=r"script: 3 replies could not be read; the last: it breaks off") as failed,
    ):
        ask(model, ModelRequest(messages), read_object, tries=2)

    assert failed.value.reply == '{"message": "cut of'
    assert [problem.split(";")[0] for problem in failed.value.problems[:2]] == [
        "there is no JSON object in it",
        "it is empty",
    ]
    assert failed.value.tries == len(failed.value.problems) == 3
    assert messages == [*model.calls[-1], {"role": "assistant", "content": '{"message": "cut of'}]


def test_tries_are_counted_afresh_for_each_question():
    messages = asked()
    with ScriptedModel(["bad", "bad", "bad", '{"a": 1}', "bad", "bad", "bad", '{"b": 2}']) as model:
        assert ask(model, ModelRequest(messages), read_object)[0] == {"a": 1}
        messages.append({"role": "user", "content": "and now?"})
        assert ask(model, ModelRequest(messages), read_object)[0] == {"b": 2}


def test_a_reply_that_the_server_has_broken_off_is_asked_for_again():
    cut = Completion("```python\ndf = load()", finish_reason="error")
    with ScriptedModel([cut, "```python\nload()\n```"]) as model:
        said, _ = ask(model, ModelRequest(asked()), str, whole=True)

    assert said == "```python\nload()\n```"
    assert "the server has ended the reply in the middle (its end is missing)" in model.calls[1][-1]["content"]


def test_where_each_reply_was_cut_off_the_servers_limit_is_named():
    cut, other = Completion('{"message": "a long st', finish_reason="length"), "in words"
    for script, words in (([cut, cut], "model.extra: {max_tokens: 4096}"), ([other, cut], "A stronger model")):
        with ScriptedModel(script) as model, pytest.raises(ModelUnreadable, match=words):
            ask(model, ModelRequest(asked()), read_object, tries=1)


def test_a_reply_that_was_cut_off_is_told_to_be_shorter():
    cut = Completion('{"message": "a long st', finish_reason="length")
    with ScriptedModel([cut, '{"message": "short"}']) as model:
        ask(model, ModelRequest(asked()), read_object)

    assert "cut off at the length limit; answer shorter" in model.calls[1][-1]["content"]


def test_a_reply_that_a_filter_has_emptied_is_told_as_such():
    cut = Completion("", finish_reason="content_filter")
    with (
        ScriptedModel([cut, cut]) as model,
        pytest.raises(
            ModelUnreadable, match=r"content filter has stopped the reply \(it is empty.*in other words"
        ) as no,
    ):
        ask(model, ModelRequest(asked()), read_object, tries=1)

    assert "stronger" not in str(no.value)


CODE = "I load.\n```python\ndf = load()\n"


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (CODE, True),
        (CODE + "print(df)\n```\nThis prints the", False),
        ("The mean is 12.5 and the median", True),
        ('{"message": "It is 42."}', False),
        ('{"message": "It is 42."}\n{"message": "And', False),
        ("```json\n{'message': 'It is 42.',}", False),
        ('{"message": {"text": "It is 42."}, "code"', True),
        ('{"message": "load it"}\n' + CODE, True),
        ('{"message": "```python\n1 + 1\n```"}', False),
        ('<think>{"a": 1}</think>The mean', True),
    ],
)
def test_a_reply_that_breaks_off_can_be_refused_where_something_is_lost(text, lost):
    cut = Completion(text, finish_reason="length")
    with ScriptedModel([cut, *[Completion(text)] * lost]) as model:
        said, _ = ask(model, ModelRequest(asked()), str, whole=True)

    assert said == text.removeprefix('<think>{"a": 1}</think>')
    assert not lost or "cut off at the length limit; answer shorter (its end is missing)" in str(model.calls[1][-1])


@pytest.mark.parametrize("before", [[], ["unreadable"]], ids=["at once", "after an unreadable reply"])
def test_a_failed_call_leaves_the_messages_as_they_were(before):
    messages = asked()
    with (
        ScriptedModel([*before, ModelError("no connection")]) as model,
        pytest.raises(ModelError, match="no connection"),
    ):
        ask(model, ModelRequest(messages), read_object)

    assert messages == asked()


def test_an_error_of_the_readers_own_is_not_mistaken_for_an_unreadable_reply():
    def read(text):
        raise KeyError("a bug")

    with ScriptedModel(["x"]) as model, pytest.raises(KeyError, match="a bug"):
        ask(model, ModelRequest(asked()), read)


def test_schema_text_calls_time_and_cancellation_are_passed_on():
    calls, pieces, cancelled = [], [], threading.Event()
    schema = {"type": "object"}
    first = Completion("bad", usage=Usage(5, 0, 1, 1))
    with ScriptedModel([first, '{"a": 1}']) as model:
        ask(
            model,
            ModelRequest(
                asked(),
                schema=schema,
                on_text=pieces.append,
                on_call=lambda completion, seconds: calls.append((completion.usage.prompt_tokens, seconds >= 0)),
                seconds=60.0,
                cancelled=cancelled,
            ),
            read_object,
        )
        cancelled.set()
        with pytest.raises(ModelError, match="cancelled"):
            ask(model, ModelRequest(asked(), cancelled=cancelled), read_object)

    assert "".join(pieces) == 'bad{"a": 1}'
    assert calls == [(5, True), (0, True)]
    assert model.schemas == [schema, schema]


def test_the_time_is_for_all_tries_together():
    given = []

    class Slow:
        def complete(self, messages, *, seconds=None, **rest):
            given.append(seconds)
            return Completion("bad")

    with pytest.raises(ModelUnreadable, match="2 replies"):
        ask(Slow(), ModelRequest(asked(), seconds=9.0), read_object, tries=1)

    assert 0 < given[1] < given[0] <= 9.0


def test_what_could_not_be_read_is_a_value_error_with_its_problem():
    error = Unreadable("`send_to` is missing")
    assert isinstance(error, ValueError)
    assert error.problem == str(error) == "`send_to` is missing"
