"""The OpenAI client against real servers on loopback: what it sends, what it reads, and how it fails."""

import json
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tw_autogen.code_interpreter import CodeInterpreterSettings
from tw_autogen.conversation import Round
from tw_autogen.errors import ConfigError, ModelError, NoModelError, PromptTooLong
from tw_autogen.model import ChatModel, ModelSettings, OpenAIModel, ToolCall, Usage, is_too_long, resolve_model
from tw_autogen.model.model_request import reporting_delays
from tw_autogen.model.openai_model import is_loopback
from tw_autogen.model.settings import Price
from tw_autogen.planner import PlannerSettings
from tw_autogen.role import Turn
from tw_autogen.session import read_settings

from .scripted_server import SOON, Broken, Reply, has_models, refused, said, scripted_server, streamed

ASKED = [{"role": "user", "content": "what is 6*7?"}]
SCHEMA = {
    "type": "object",
    "properties": {"message": {"type": "string"}},
    "required": ["message"],
    "additionalProperties": False,
}
KEY = "sk-secret-1234567890"


HELD_SECONDS = 120.0
"""How long a server keeps an answer back that nobody should wait for."""


def model_at(server, **settings):
    return OpenAIModel(ModelSettings(base_url=server.base_url, **{"name": "tiny", "seconds": 20.0, **settings}))


def formats(server):
    return [request.get("response_format", {}).get("type", "text") for request in server.requests]


def test_it_is_a_chat_model_and_sends_no_more_than_it_was_told():
    with scripted_server(said("It is 42.", prompt_tokens=9, completion_tokens=4)) as server:
        model = model_at(server)
        reply = model.complete(ASKED)

    assert isinstance(model, ChatModel)
    assert (reply.text, reply.model, reply.finish_reason) == ("It is 42.", "tiny-1", "stop")
    assert reply.usage == Usage(prompt_tokens=9, completion_tokens=4, calls=1)
    assert server.requests == [{"model": "tiny", "messages": ASKED}]


def test_temperature_extra_fields_and_tools_are_sent_when_set():
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    with scripted_server(said("ok")) as server:
        model_at(server, temperature=0.0, extra={"seed": 7}).complete(ASKED, tools=[tool])

    assert server.requests[0]["temperature"] == 0.0
    assert server.requests[0]["seed"] == 7
    assert server.requests[0]["tools"] == [tool]


def test_a_call_costs_what_the_price_of_its_model_says():
    prices = {"tiny": Price(prompt=2.0, completion=10.0, cached=0.5), "tin": Price(9.0, 9.0), "large": Price(9.0, 9.0)}
    details = {"prompt_tokens_details": {"cached_tokens": 400}}
    with scripted_server(said("42", prompt_tokens=1000, completion_tokens=100, **details), said("42")) as server:
        model = model_at(server, prices=prices)

        assert model.complete(ASKED).usage.dollars == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 10) / 1e6)
        assert model.complete(ASKED).usage.dollars is None  # the server reported no tokens


@pytest.mark.parametrize("text", ["{tiny: {prompt: 1, completion: 2}}", '{"tiny": {"prompt": 1, "completion": 2}}'])
def test_prices_are_settings_on_one_line_too(text):
    read = read_settings({"model.prices": text}, environ={}).read("model", ModelSettings)

    assert read.prices == {"tiny": Price(1, 2)}


def test_prices_are_settings(tmp_path):
    (tmp_path / "tw_autogen.yaml").write_text(
        "model:\n  prices:\n    gpt-5.4-mini: {prompt: 0.4, completion: 1.6}\n", encoding="utf-8"
    )
    settings = read_settings(project=tmp_path, environ={}).read("model", ModelSettings)

    for name in ("gpt-5.4-mini", "gpt-5.4-mini-2026-03-17", "gpt-5.4-mini-0613", "gpt-5.4-mini-latest"):
        assert settings.price(name) == Price(0.4, 1.6)
    for name in ("gpt-5.4", "gpt-5.4-mini-high", "gpt-5.4-mini-high-2026-03-17", "gpt-5.4-mini-32k"):
        assert settings.price(name) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("openai/gpt-4o", "gpt-4o"),
        ("models/GPT-4o", "gpt-4o"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-1120", "gpt-4o"),
        ("gemini-1.5-pro-002", "gemini-1.5-pro"),
        ("azure/gpt-4", "azure/gpt-4"),
        ("openai/gpt-4", "gpt-4"),
        ("claude-sonnet-4-5-20250929", None),
        ("claude-sonnet-4-5", None),
        ("gpt-4o-100", None),
        ("gpt-4o-mini", None),
        ("gpt-4-32k", None),
        ("gpt-4-1106-preview", None),
        ("gpt-4.1", None),
    ],
)
def test_a_price_is_that_of_the_model_and_of_no_other_version(name, known):
    names = ("claude-sonnet-4", "gpt-4o", "gpt-4", "azure/gpt-4", "gemini-1.5-pro")
    prices = {one: Price(float(at), 1.0) for at, one in enumerate(names)}

    assert ModelSettings(prices=prices).price(name) == (prices[known] if known else None)


def test_cached_tokens_are_read_whole_and_streamed():
    usage = {"prompt_tokens": 2000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1024}}
    with scripted_server(said("a", **usage), streamed({"content": "b"}, usage=usage)) as server:
        model = model_at(server)
        whole, grown = model.complete(ASKED), model.complete(ASKED, on_text=lambda text: None)

    assert whole.usage == grown.usage == Usage(2000, 1024, 5, 1)
    assert server.requests[1]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 637}, Usage(32, 0, 605, 1)),
        ({"prompt_tokens": 32, "completion_tokens": 605, "total_tokens": 637}, Usage(32, 0, 605, 1)),
        ({"prompt_tokens": 32, "completion_tokens": 9}, Usage(32, 0, 9, 1)),
        ({"prompt_tokens": 100, "completion_tokens": 9, "prompt_cache_hit_tokens": 90}, Usage(100, 90, 9, 1)),
        ({"prompt_tokens": 100.0, "completion_tokens": 9.0, "cached_tokens": 90}, Usage(100, 90, 9, 1)),
        ({"prompt_tokens": None, "completion_tokens": "9"}, Usage(calls=1)),
    ],
)
def test_tokens_are_counted_however_a_server_names_them(usage, read):
    with scripted_server(said("42", **usage)) as server:
        assert model_at(server).complete(ASKED).usage == read


def test_no_call_costs_less_than_nothing():
    assert Price(1.0, 2.0, 0.1).of(Usage(10, 100, 1, 1)) == pytest.approx((100 * 0.1 + 2.0) / 1e6)


def test_streamed_text_arrives_in_the_callers_thread_and_adds_up_to_the_reply():
    threads, pieces = set(), []

    def grow(text):
        threads.add(threading.current_thread())
        pieces.append(text)

    with scripted_server(
        streamed({"role": "assistant", "content": ""}, {"content": "It "}, {"content": "is 42."})
    ) as server:
        reply = model_at(server).complete(ASKED, on_text=grow)

    assert pieces == ["It ", "is 42."]
    assert reply.text == "It is 42."
    assert threads == {threading.current_thread()}


def test_what_on_text_raises_comes_out_and_ends_the_call():
    def fail(text):
        raise RuntimeError("the display is gone")

    with (
        scripted_server(streamed({"content": "a"}, {"content": "b"})) as server,
        pytest.raises(RuntimeError, match="the display is gone"),
    ):
        model_at(server).complete(ASKED, on_text=fail)


def test_a_servers_list_of_parts_is_text_and_an_absent_content_is_none_of_it():
    with scripted_server(
        said([{"type": "text", "text": "It "}, {"type": "text", "text": "is."}]), said(None)
    ) as server:
        model = model_at(server)
        assert model.complete(ASKED).text == "It is."
        assert model.complete(ASKED).text == ""


def test_tool_calls_are_read_whole():
    reply = said(None)
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    reply.body["choices"][0]["message"]["tool_calls"] = [call]
    reply.body["choices"][0]["finish_reason"] = "tool_calls"
    with scripted_server(reply) as server:
        answer = model_at(server).complete(ASKED, tools=[{"type": "function", "function": {"name": "look"}}])

    assert answer.tool_calls == (ToolCall("c1", "look", '{"at": 1}'),)
    assert answer.finish_reason == "tool_calls"


@pytest.mark.parametrize("second_index", [1, 0], ids=["numbered", "every call numbered 0"])
def test_tool_calls_are_put_together_from_their_pieces(second_index):
    def part(index, **more):
        return {"tool_calls": [{"index": index, "type": "function", **more}]}

    chunks = (
        part(0, id="c1", function={"name": "look", "arguments": ""}),
        part(0, function={"arguments": '{"at"'}),
        part(0, function={"arguments": ": 1}"}),
        part(second_index, id="c2", function={"name": "go", "arguments": "{}"}),
    )
    with scripted_server(streamed(*chunks, end="tool_calls")) as server:
        answer = model_at(server).complete(ASKED, on_text=lambda text: None)

    assert answer.tool_calls == (ToolCall("c1", "look", '{"at": 1}'), ToolCall("c2", "go", "{}"))


def called(index, number=None, name=None, arguments=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    named = {} if number is None else {"id": number}
    return {"tool_calls": [{"index": index, "type": "function", "function": function, **named}]}


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        (
            [
                called(0, "", "f", '{"a":1}'),
                called(0, "", "g", '{"b":2}'),
                called(0, "", "g", "{}"),
                called(0, "", "h", ""),
            ],
            [("", "f", '{"a":1}'), ("", "g", '{"b":2}'), ("", "g", "{}"), ("", "h", "")],
        ),
        ([called(0, "c1", "f"), called(0, "c2", None, '{"a":'), called(0, "c3", None, "1}")], [("c1", "f", '{"a":1}')]),
        (
            [
                called(0, "c1", "f", ""),
                called(0, None, None, '{"a":'),
                called(0, "c1", "f", "[{}"),
                called(0, "c1", "f", ",{}]}"),
            ],
            [("c1", "f", '{"a":[{},{}]}')],
        ),
        ([called(0, "c1", "f", "{}"), called(0, "c2", "f", "{}")], [("c1", "f", "{}"), ("c2", "f", "{}")]),
        ([called(0, "c1"), called(0, "c1", "f"), called(0, None, None, "{}")], [("c1", "f", "{}")]),
    ],
    ids=[
        "without id and index",
        "another id with each piece",
        "the name with each piece",
        "one name twice",
        "the name later",
    ],
)
def test_pieces_of_tool_calls_are_put_together_however_a_server_numbers_them(pieces, calls):
    with scripted_server(streamed(*pieces, end="tool_calls")) as server:
        answer = model_at(server).complete(ASKED, on_text=lambda text: None)

    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == calls


@pytest.mark.parametrize("on_text", [None, lambda text: None], ids=["whole", "streamed"])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_reply_that_a_server_took_for_a_thought_is_read_and_a_thought_is_not(field, on_text):
    reply, thought = '{"message": "It is 42."}', "I should say 42, in JSON."
    block = "```\n1\n```"
    cases = (None, reply, reply), (None, thought, ""), ("42", reply, "42"), ("", block, block)
    for content, said_so, text in cases:
        whole = said(content)
        whole.body["choices"][0]["message"][field] = said_so
        grown = streamed({"content": content}, {field: said_so[:5]}, {field: said_so[5:]})
        with scripted_server(grown if on_text else whole) as server:
            assert model_at(server).complete(ASKED, on_text=on_text).text == text


@pytest.mark.parametrize("on_text", [None, lambda text: None], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("said_so", "reason"),
    [
        ("model_length", "length"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("abort", "error"),
        ("stop", "stop"), ("end_turn", "end_turn"), ("tool_calls", "tool_calls"),
    ],
)  # fmt: skip
def test_why_a_reply_was_cut_off_is_read_in_the_words_of_other_servers(said_so, reason, on_text):
    whole = said("It")
    whole.body["choices"][0]["finish_reason"] = said_so
    with scripted_server(streamed({"content": "It"}, end=said_so) if on_text else whole) as server:
        assert model_at(server).complete(ASKED, on_text=on_text).finish_reason == reason


def test_a_strict_schema_is_sent_as_one_and_an_open_one_is_not():
    with scripted_server(said("{}")) as server:
        model = model_at(server)
        model.complete(ASKED, schema=SCHEMA)
        model.complete(ASKED, schema={**SCHEMA, "title": "The reply", "required": []})

    first, second = (request["response_format"]["json_schema"] for request in server.requests)
    assert (first["strict"], first["name"]) == (True, "reply")
    assert (second["strict"], second["name"]) == (False, "The_reply")


def test_a_refused_schema_becomes_an_object_then_text_and_is_remembered():
    def picky(request):
        kind = request.get("response_format", {}).get("type")
        return refused(400, f"response_format {kind!r} is not supported") if kind else said("{}")

    with scripted_server(picky) as server:
        model = model_at(server)
        assert model.objects_only
        model.complete(ASKED, schema=SCHEMA)
        model.complete(ASKED, schema=SCHEMA)

    assert formats(server) == ["json_schema", "json_object", "text", "text"]
    assert not model.objects_only


TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def test_a_refusal_of_something_else_costs_later_requests_no_part():
    words = "Failed to deserialize the JSON body into the target type: unknown variant `image_url` of a tool message"

    def no_images(request):
        return refused(400, words) if isinstance(request["messages"][0]["content"], list) else said("{}")

    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}]
    with scripted_server(no_images) as server:
        model = model_at(server)
        with pytest.raises(ModelError, match="unknown variant"):
            model.complete(picture, schema=SCHEMA, tools=[TOOL])
        assert model.objects_only
        model.complete(ASKED, schema=SCHEMA, tools=[TOOL])

    assert formats(server)[-1] == "json_schema"
    assert "tools" in server.requests[-1]


def test_one_bad_generation_is_asked_for_again_without_its_form_which_is_kept():
    bad = refused(400, "Failed to generate JSON. Please adjust your prompt.", code="json_validate_failed")
    with scripted_server(bad, said("{}")) as server:
        model = model_at(server)
        for _ in range(2):
            model.complete(ASKED, schema=SCHEMA)

    assert formats(server) == ["json_schema", "json_object", "json_schema"]


@pytest.mark.parametrize(
    "words", ["Failed to parse grammar: not supported", "failed to load model vocabulary required for format"]
)
def test_a_failure_to_make_a_grammar_is_a_refusal_of_the_format(words):
    def picky(request):
        return refused(500, words) if "response_format" in request else said("{}")

    with scripted_server(picky) as server:
        model = model_at(server, max_tries=1)
        for _ in range(2):
            model.complete(ASKED, schema=SCHEMA)
        server.answers[0] = refused(500, "broken")
        with pytest.raises(ModelError, match=r"failed \(500\) once: broken"):
            model.complete(ASKED, schema=SCHEMA)

    assert formats(server) == ["json_schema", "json_object", "text", "text", "text"]


def test_a_router_that_finds_no_server_with_tools_is_asked_without():
    def router(request):
        return refused(404, "No endpoints found that support tool use.") if "tools" in request else said("in words")

    with scripted_server(router) as server:
        assert model_at(server).complete(ASKED, tools=[TOOL]).text == "in words"


def test_a_server_whose_streams_have_no_end_is_asked_for_the_whole_from_the_third_on():
    def endless(request):
        return streamed({"content": "It"}, end=None) if "stream" in request else said("It is 42.")

    with scripted_server(endless) as server:
        model = model_at(server)
        for _ in range(4):
            assert model.complete(ASKED, on_text=lambda text: None).text == "It is 42."

    assert ["stream" in request for request in server.requests] == [True, False, True, False, False, False]


def test_a_whole_answer_behind_blanks_and_events_without_blank_lines_are_asked_for_once():
    raw = b"".join(line + b"\n" for line in streamed({"content": "ok"}).raw.split(b"\n") if line)
    blanks = Reply(raw=b"\n\n" + json.dumps(said("ok").body).encode())
    for answer in (Reply(raw=raw, kind="text/event-stream"), blanks):
        with scripted_server(answer) as server:
            assert model_at(server).complete(ASKED, on_text=lambda text: None).text == "ok"

        assert len(server.requests) == 1


def test_a_refusal_in_the_words_of_a_validation_error_counts_as_well():
    detail = Reply(422, {"detail": [{"loc": ["body", "response_format", "type"], "msg": "unexpected value"}]})
    with scripted_server(detail, said("{}")) as server:
        model_at(server).complete(ASKED, schema=SCHEMA)

    assert formats(server) == ["json_schema", "json_object"]


@pytest.mark.parametrize(
    ("setting", "sent"), [("json_object", "json_object"), ("text", "text"), ("json_schema", "json_schema")]
)
def test_the_setting_says_where_the_ladder_starts(setting, sent):
    with scripted_server(said("{}")) as server:
        model_at(server, response_format=setting).complete(ASKED, schema=SCHEMA)

    assert formats(server) == [sent]


def test_a_server_that_refuses_tools_is_asked_without_and_remembered():
    tools = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]

    def answer(request):
        return refused(400, "this model does not support tools") if "tools" in request else said("in words")

    with scripted_server(answer, answer, answer) as server:
        model = model_at(server)
        replies = [model.complete(ASKED, tools=tools).text for _ in range(2)]

    assert replies == ["in words", "in words"]
    assert ["tools" in request for request in server.requests] == [True, False, False]


def test_a_server_that_refuses_stream_options_is_asked_without_and_remembered():
    def picky(request):
        return (
            refused(400, "Unknown field: stream_options")
            if "stream_options" in request
            else streamed({"content": "ok"})
        )

    with scripted_server(picky) as server:
        model = model_at(server)
        assert model.complete(ASKED, on_text=lambda text: None).text == "ok"
        assert model.complete(ASKED, on_text=lambda text: None).usage == Usage(calls=1)

    assert ["stream_options" in request for request in server.requests] == [True, False, False]


def test_a_server_that_refuses_to_stream_is_asked_for_the_whole_and_remembered():
    no = "Your organization must be verified to stream this model."

    def picky(request):
        return refused(400, no, param="stream") if "stream" in request else said("ok", prompt_tokens=9)

    with scripted_server(picky) as server:
        model = model_at(server)
        for _ in range(2):
            assert model.complete(ASKED, schema=SCHEMA, on_text=lambda text: None).usage.prompt_tokens == 9

    assert ["stream" in request for request in server.requests] == [True, False, False]
    assert "stream_options" not in server.requests[-1]
    assert set(formats(server)) == {"json_schema"}


@pytest.mark.parametrize("first", [refused(429, "slow down"), refused(500, "oops"), refused(503, "loading"), Broken])
def test_a_busy_or_broken_server_is_asked_again(first):
    with scripted_server(first, said("It is 42.")) as server:
        assert model_at(server).complete(ASKED).text == "It is 42."

    assert len(server.requests) == 2


def test_after_all_tries_a_busy_server_is_an_error_that_counts_them():
    with (
        scripted_server(refused(429, "slow down, please")) as server,
        pytest.raises(ModelError, match=r"/v1: still too busy.*\(429\), after 3 times: slow down, please") as failed,
    ):
        model_at(server, max_tries=3).complete(ASKED)

    assert len(server.requests) == failed.value.tries == 3


def test_a_failing_server_is_an_error_that_names_its_status():
    with (
        scripted_server(refused(503, "an error while loading the model")) as server,
        pytest.raises(ModelError, match=r"the server failed \(503\) 2 times: an error while loading the model"),
    ):
        model_at(server, max_tries=2).complete(ASKED)


def test_a_server_that_still_loads_its_model_is_waited_for_longer_than_a_failing_one():
    told = []
    loading = refused(503, "Loading model", type="unavailable_error")
    with scripted_server(loading, loading, said("ok")) as server, reporting_delays(told.append):
        assert model_at(server, max_tries=2).complete(ASKED).text == "ok"

    assert told == ["the server still loads its model (503)"] * 2


@pytest.mark.parametrize(
    "torn",
    [
        streamed({"content": "It is"}, end=None),
        Reply(raw=streamed({"content": "It is"}, end=None).raw, kind="text/event-stream", declared=10_000),
        Reply(raw=b'data: {"id": "c1", "choi', kind="text/event-stream"),
        Reply(raw=b"", kind="text/event-stream"),
    ],
    ids=["no end", "connection torn", "half a line", "nothing"],
)
def test_a_stream_that_breaks_off_is_asked_again_and_no_text_is_given_twice(torn):
    pieces = []
    with scripted_server(torn, said("It is 42.")) as server:
        reply = model_at(server).complete(ASKED, on_text=pieces.append)

    assert reply.text == "It is 42."
    assert "".join(pieces) in ("It is", "")
    assert "stream" not in server.requests[1]


PIECES = ({"content": "It is"}, {"content": " 42."})


@pytest.mark.parametrize(
    "answer",
    [
        Reply(raw=streamed(*PIECES).raw.removesuffix(b"data: [DONE]\n\n"), kind="text/event-stream", declared=10_000),
        Reply(raw=streamed(*PIECES, end=None).raw + b"data: [DONE]\n\n", kind="text/event-stream"),
        said("It is 42."),
        Reply(raw=json.dumps(said("It is 42.").body, indent=1).encode(), kind="text/event-stream"),
    ],
    ids=["torn after its finish_reason", "no finish_reason", "JSON and no stream", "JSON that is said to be a stream"],
)
def test_an_answer_that_came_whole_is_not_asked_for_again(answer):
    with scripted_server(answer, said("another")) as server:
        reply = model_at(server).complete(ASKED, on_text=lambda text: None)

    assert (reply.text, reply.finish_reason) == ("It is 42.", "stop")
    assert len(server.requests) == 1


@pytest.mark.parametrize("on_text", [None, lambda text: None], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "upstream is overloaded", "code": 502}},
        {"error": "upstream is overloaded"},
        {"choices": [{"error": {"message": "upstream is overloaded"}, "message": {"content": ""}}]},
    ],
)
def test_an_error_in_place_of_an_answer_is_told_in_the_servers_words(body, on_text):
    with (
        scripted_server(Reply(body=body)) as server,
        pytest.raises(ModelError, match="/v1: the server answered with an error: upstream is overloaded$"),
    ):
        model_at(server, max_tries=1).complete(ASKED, on_text=on_text)


@pytest.mark.parametrize("on_text", [None, lambda text: None], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("error", "requests"),
    [
        ({"code": 429, "message": "rate-limited upstream"}, 2),
        ({"code": 503, "message": "try later"}, 2),
        ({"type": "overloaded_error", "message": "Overloaded"}, 2),
        ({"code": 400, "message": "no such parameter"}, 1),
        ({"code": 429, "type": "insufficient_quota", "message": "no credit"}, 1),
    ],
)
def test_an_error_in_place_of_an_answer_that_may_pass_is_asked_about_again(error, requests, on_text):
    wrong = Reply(raw=f"data: {json.dumps({'error': error})}\n\n".encode(), kind="text/event-stream")
    told = []
    with scripted_server(wrong if on_text else Reply(body={"error": error}), said("ok")) as server:
        model = model_at(server)
        with reporting_delays(told.append):
            if requests == 2:
                assert model.complete(ASKED, on_text=on_text).text == "ok"
            else:
                with pytest.raises(ModelError, match=error["message"]):
                    model.complete(ASKED, on_text=on_text)

    assert len(server.requests) == requests
    assert told == [f"the server answered with an error: {error['message']}; try 2 of 4"] * (requests - 1)


def call_of(text):
    return {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": text}}]}


@pytest.mark.parametrize("delta", [lambda text: {"content": text}, call_of])
def test_a_streamed_answer_has_a_longest_size(delta):
    pieces = []
    endless = streamed(*[delta("x" * 1_000_000)] * 17)
    with scripted_server(endless) as server, pytest.raises(ModelError, match="an answer of more than 16 000 000"):
        model_at(server, max_tries=1).complete(ASKED, on_text=pieces.append)

    assert len("".join(pieces)) in (16_000_000, 0)


def test_a_connection_that_always_breaks_is_an_error():
    with (
        scripted_server(Broken) as server,
        pytest.raises(ModelError, match=r"no connection, or a broken one, 2 times: .*Is the server running"),
    ):
        model_at(server, max_tries=2).complete(ASKED)


def test_an_error_in_the_middle_of_a_stream_is_told_in_the_servers_words():
    torn = Reply(raw=b'data: {"error": {"message": "out of memory"}}\n\n', kind="text/event-stream")
    with (
        scripted_server(torn) as server,
        pytest.raises(ModelError, match="the server answered with an error: out of memory"),
    ):
        model_at(server).complete(ASKED, on_text=lambda text: None)


def test_nobody_listening_is_an_error_that_says_what_to_look_at():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        model = OpenAIModel(ModelSettings(base_url=url, name="tiny", max_tries=1))
        with pytest.raises(ModelError, match=rf"{url}: no connection.*refused.*OPENAI_BASE_URL"):
            model.complete(ASKED)
        with pytest.raises(ModelError, match=r"/v1/models: no list of models"):
            model.models()


def test_a_refused_key_is_an_error_that_never_shows_it():
    with (
        scripted_server(refused(401, f"Incorrect API key provided: {KEY}")) as server,
        pytest.raises(ModelError, match=r"the key was refused \(401\): Incorrect API key provided: \*\*\*") as failed,
    ):
        model_at(server, api_key=KEY).complete(ASKED)

    assert KEY not in str(failed.value)
    assert failed.value.__cause__ is None
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(ModelSettings(api_key=KEY))


def test_a_loopback_server_that_wants_a_key_says_so():
    with (
        scripted_server(refused(401, "no key")) as server,
        pytest.raises(ModelError, match=r"a key is wanted there \(401\): no key\. Set `model\.api_key`"),
    ):
        model_at(server).complete(ASKED)


def test_an_address_with_a_password_is_shown_without_it():
    model = OpenAIModel(ModelSettings(base_url="http://me:hunter2@localhost:1/v1?k=v", name="tiny"))
    assert model.base_url == "http://localhost:1/v1"


@pytest.mark.parametrize("status", [404, 400])
def test_an_unknown_model_is_an_error_that_lists_those_the_server_has(status):
    no = refused(status, "The model `tiny` does not exist", code="model_not_found")
    with (
        scripted_server(no, models=has_models("tiny-2b", "large")) as server,
        pytest.raises(ModelError, match=r"no model 'tiny' there; did you mean 'tiny-2b'\?; it has: tiny-2b, large\."),
    ):
        model_at(server).complete(ASKED)


def test_a_long_list_of_models_is_cut():
    names = [f"m{number:02}" for number in range(30)]
    with (
        scripted_server(refused(404, "nope"), models=has_models(*names)) as server,
        pytest.raises(ModelError, match=r"it has: m00, .*, m19 and 10 more\. Set `model\.name`"),
    ):
        model_at(server, name="other").complete(ASKED)


def test_an_address_without_v1_is_told_from_a_missing_model():
    with (
        scripted_server(Reply(404, {"detail": "Not Found"})) as server,
        pytest.raises(ModelError, match=r"not found \(404\).*usually ends in /v1"),
    ):
        model_at(server).complete(ASKED)


@pytest.mark.parametrize("kind", ["text/plain", "text/html; charset=utf-8", "application/octet-stream", "x"])
def test_an_answer_is_read_whatever_its_content_type_says(kind):
    with scripted_server(replace(said("It is 42."), kind=kind)) as server:
        assert model_at(server).complete(ASKED).text == "It is 42."


def test_a_byte_order_mark_before_a_stream_costs_no_text():
    pieces = []
    with scripted_server(replace(streamed(*PIECES), raw=b"\xef\xbb\xbf" + streamed(*PIECES).raw)) as server:
        reply = model_at(server).complete(ASKED, on_text=pieces.append)

    assert reply.text == "".join(pieces) == "It is 42."


def test_an_error_in_the_place_of_the_list_of_models_is_shown():
    with (
        scripted_server(models=Reply(body={"error": "not licensed"})) as server,
        pytest.raises(ModelError, match=r"no list of models: not licensed\."),
    ):
        model_at(server).models()


def test_a_web_page_in_the_answers_place_is_an_error():
    with (
        scripted_server(Reply(raw=b"<html>hello</html>", kind="text/html")) as server,
        pytest.raises(ModelError, match=r"what came back is no chat completion.*ends in /v1"),
    ):
        model_at(server).complete(ASKED)


@pytest.mark.parametrize(
    "no",
    [
        refused(400, "too much", code="context_length_exceeded"),
        refused(400, "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens"),
        refused(400, "the request exceeds the available context size. try increasing it"),
        refused(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        refused(400, "This model's maximum prompt length is 131072 but the request contains 131130 tokens."),
        refused(400, "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000"),
        refused(413, "please reduce your message size and try again."),
        refused(400, "The decoder prompt (length 12345) is longer than the maximum model length of 8192."),
        refused(422, "Input validation error: `inputs` must have less than 3072 tokens. Given: 5000"),
        refused(422, "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512"),
        refused(400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
        refused(400, "Invalid request: Your request exceeded model token limit: 131072"),
        refused(400, "tokens in request more than max tokens allowed"),
        refused(400, "a sequence length of 10024, but the maximum supported sequence length is just 8192!"),
        refused(400, "Prompt length (5000) exceeds maximum input length (4096)."),
        refused(400, "Prompt length 5000 is greater than max_seq_len 4096"),
        refused(400, "Bad request: prompt token count of 5000 cannot exceed 4096"),
        refused(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000."),
    ],
)
def test_a_prompt_that_is_too_long_is_told_as_such_and_not_sent_again(no):
    with (
        scripted_server(no) as server,
        pytest.raises(PromptTooLong, match=rf"the prompt is too long for 'tiny' \({no.status}\).*longer context"),
    ):
        model_at(server).complete(ASKED)

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Too many tokens, please wait before trying again.",
        "Rate limit reached: too many tokens per min (TPM): Limit 30000, Used 20000, Requested 15000.",
        "Number of request tokens has exceeded your per-minute rate limit. Please reduce the length of the prompt.",
    ],
)
def test_a_rate_of_tokens_that_is_reached_is_no_prompt_that_is_too_long(words):
    with (
        scripted_server(refused(429, words)) as server,
        pytest.raises(ModelError, match=r"still too busy \(429\), after 2 times") as failed,
    ):
        model_at(server, max_tries=2).complete(ASKED)

    assert not is_too_long(failed.value)
    assert not is_too_long(ModelError(f"MyClient: RateLimitError: Error code: 429 - {words}"))


def test_a_prompt_that_is_too_long_costs_no_part_of_the_request():
    words = (
        "maximum context length is 128000 tokens. However, your messages resulted in 201901 tokens (including 92 in "
    )
    words += "the response_format schemas and 80 in the tools.). Please reduce the length of the messages or schemas."
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    with scripted_server(refused(400, words), said("{}")) as server:
        model = model_at(server)
        with pytest.raises(PromptTooLong, match="the prompt is too long"):
            model.complete(ASKED, schema=SCHEMA, tools=[tool])
        model.complete(ASKED, schema=SCHEMA, tools=[tool])

    assert formats(server) == ["json_schema", "json_schema"]
    assert ["tools" in request for request in server.requests] == [True, True]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "messages: roles must alternate"),
        (400, "max_tokens is too large: 9000. This model supports at most 4096 completion tokens"),
        (422, "Input validation error: `max_new_tokens` must be <= 512"),
        (400, "This model 'tiny' got an invalid reasoning_effort"),
        (403, "Country, region, or territory not supported"),
    ],
)
def test_any_other_refusal_is_told_in_the_servers_words_and_not_tried_again(status, words):
    with (
        scripted_server(refused(status, words), models=has_models("tiny")) as server,
        pytest.raises(ModelError, match=re.escape(f"the request was refused ({status}): {words}")) as failed,
    ):
        model_at(server).complete(ASKED, schema=SCHEMA)

    assert len(server.requests) == 1
    assert not is_too_long(failed.value)


def test_a_refusal_without_an_error_is_told_in_its_other_words():
    with (
        scripted_server(Reply(400, {"error": None, "message": "temperature must be 1"})) as server,
        pytest.raises(ModelError, match=r"the request was refused \(400\): temperature must be 1"),
    ):
        model_at(server).complete(ASKED)


def googles(status, message, **more):
    return Reply(status, [{"error": {"code": status, "message": message, **more}}])


def test_a_refusal_in_googles_list_is_read_as_any_other():
    no = googles(400, "API key not valid. Please pass a valid API key.", details=[])
    with (
        scripted_server(no) as server,
        pytest.raises(ModelError, match=r"the key was refused \(400\): API key not valid\..*Check `model\.api_key`"),
    ):
        model_at(server, api_key=KEY).complete(ASKED)


def test_a_quota_for_a_minute_is_waited_for_in_spite_of_its_words():
    words = "You exceeded your current quota, please check your plan and billing details. "
    told = []
    later = googles(429, f"{words}{'* Quota exceeded for metric. ' * 20}Please retry in 20ms.")
    with scripted_server(later, said("ok"), later) as server:
        with reporting_delays(told.append):
            assert model_at(server).complete(ASKED).text == "ok"
        with pytest.raises(ModelError, match=r"still too busy \(429\), after 2 times"):
            model_at(server, max_tries=2).complete(ASKED)

    assert told == ["the server is too busy (429); try 2 of 4 in 0.02 s"]


@pytest.mark.parametrize("on_text", [None, lambda text: None], ids=["whole", "streamed"])
def test_a_call_that_takes_too_long_is_given_up_at_once(on_text):
    answered = []

    def late(request):
        answered.append(server.hold.wait(HELD_SECONDS))
        return said("late")

    with scripted_server(late) as server:
        with pytest.raises(ModelError, match=r"/v1: tiny: no answer within 0\.2 s$"):
            model_at(server).complete(ASKED, on_text=on_text, seconds=0.2)
        with pytest.raises(ModelError, match=r"no answer within 0\.1 s; raise `model\.seconds`"):
            model_at(server, seconds=0.1).complete(ASKED, on_text=on_text)
        assert answered == []


def test_a_cancelled_call_returns_at_once_and_its_late_reply_is_dropped():
    cancelled, pieces, answered = threading.Event(), [], []

    def late(request):
        cancelled.set()  # the user gives up while the server still thinks
        answered.append(server.hold.wait(HELD_SECONDS))
        return streamed({"content": "late"})

    with scripted_server(late) as server:
        model = model_at(server)
        with pytest.raises(ModelError, match="the call was cancelled"):
            model.complete(ASKED, on_text=pieces.append, cancelled=cancelled)
        assert answered == []
    assert pieces == []


def test_a_call_that_is_cancelled_while_it_waits_for_its_next_try_is_never_sent_again():
    cancelled = threading.Event()

    def busy(request):
        cancelled.set()
        return Reply(429, {"error": {"message": "later"}}, headers={"retry-after-ms": "300"})

    with scripted_server(busy) as server:
        with pytest.raises(ModelError, match="the call was cancelled"):
            model_at(server).complete(ASKED, cancelled=cancelled)
        for thread in threading.enumerate():
            if thread.name == "model call":
                thread.join(30)

    assert len(server.requests) == 1


def test_a_call_may_take_longer_than_the_settings_say_if_the_caller_says_so():
    with scripted_server(lambda request: (server.hold.wait(0.5), said("late"))[1]) as server:
        assert model_at(server, seconds=0.05).complete(ASKED, seconds=20).text == "late"

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("own", "role", "ends", "words"),
    [
        (0.2, None, 60.0, r"no answer within 0\.2 s; raise `model\.seconds`"),
        (60.0, 0.2, 60.0, r"no answer within 0\.2 s$"),
        (0.01, 0.2, 60.0, r"no answer within 0\.2 s$"),
        (60.0, None, 0.2, r"no answer within 0\.(2|1\d*) s$"),  # what is left of the round's time
    ],
    ids=["the model's", "the role's", "the role's is longer", "the round's"],
)
def test_a_role_waits_as_long_as_it_says_else_as_the_model_says_and_never_longer_than_the_round(own, role, ends, words):
    with scripted_server(lambda request: (server.hold.wait(HELD_SECONDS), said("late"))[1]) as server:
        turn = Turn(Round("r", "what?"), Path.cwd(), deadline=time.monotonic() + ends)
        with pytest.raises(ModelError, match=words):
            turn.ask(model_at(server, seconds=own), ASKED, caller="Planner", seconds=role)


def test_without_a_limit_of_their_own_roles_wait_as_long_as_the_model_says():
    assert (PlannerSettings().model_seconds, CodeInterpreterSettings().model_seconds) == (None, None)


def test_a_call_that_is_cancelled_before_it_begins_asks_nobody():
    cancelled = threading.Event()
    cancelled.set()
    with scripted_server(said("x")) as server, pytest.raises(ModelError, match="the call was cancelled"):
        model_at(server).complete(ASKED, cancelled=cancelled)

    assert server.requests == []


def test_a_proxy_is_not_asked_the_way_to_loopback(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with scripted_server(said("It is 42.")) as server:
        assert model_at(server, max_tries=1).complete(ASKED).text == "It is 42."


def test_a_proxy_variable_that_is_no_address_is_named(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://p:abc")

    with pytest.raises(ConfigError, match="Invalid port: 'abc'; or unset the proxy"):
        OpenAIModel(ModelSettings(base_url="http://192.0.2.1/v1", name="tiny")).complete(ASKED)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.9.0.1/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://192.168.0.2/v1", False),
        ("https://localhost.example.com/v1", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_loopback_is_this_machine_only(url, local):
    assert is_loopback(url) is local


def test_an_address_without_a_scheme_is_a_configuration_error():
    with pytest.raises(ConfigError, match=r"model\.base_url: .*has no http:// or https:// in front"):
        OpenAIModel(ModelSettings(base_url="localhost:11434/v1", name="tiny"))


def test_without_a_model_one_line_three_remedies_and_where_it_looked():
    with pytest.raises(NoModelError, match="no model configured") as missing:
        resolve_model(ModelSettings())

    lines = str(missing.value).splitlines()
    assert lines[0] == "no model configured."
    assert [line.split(":")[0].strip() for line in lines[1:4]] == ["- OpenAI", "- local", "- no model"]
    assert lines[4].startswith("(looked at: --api-key, OPENAI_API_KEY, OAI_CONFIG_LIST")
    assert "OPENAI_API_KEY" in missing.value.looked_at


def test_a_server_elsewhere_needs_a_key():
    with pytest.raises(NoModelError, match=r"no key for https://llm\.example\.com/v1\."):
        resolve_model(ModelSettings(base_url="https://llm.example.com/v1", name="tiny"))


def test_with_a_key_alone_openais_own_server_is_asked_for_a_small_model():
    model = resolve_model(ModelSettings(api_key=KEY))
    assert (model.base_url, bool(model.name)) == ("https://api.openai.com/v1", True)


def test_the_only_model_of_a_loopback_server_is_taken_without_key_and_name():
    with scripted_server(said("hi"), models=has_models("qwen3")) as server:
        model = resolve_model(ModelSettings(base_url=server.base_url))
        model.complete(ASKED)

    assert model.name == server.requests[0]["model"] == "qwen3"


@pytest.mark.parametrize(
    ("names", "said_so"),
    [
        (("qwen3", "llama4"), "choose one of its models: qwen3, llama4"),
        ((), "it has no model yet"),
        (("m\x1b[2J", "n\u202e"), "choose one of its models: m\\x1b[2J, n\\u202e"),
    ],
)
def test_several_models_or_none_are_a_question_to_the_user(names, said_so):
    with (
        scripted_server(said("hi"), models=has_models(*names)) as server,
        pytest.raises(NoModelError, match=rf"no model configured: {server.base_url} .*{re.escape(said_so)}"),
    ):
        resolve_model(ModelSettings(base_url=server.base_url))


def test_importing_the_package_does_not_import_the_http_library():
    code = "import sys, tw_autogen.model; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


LATER = """
import sys
from tw_autogen.lazy_module import import_all
from tw_autogen.model import ModelSettings, OpenAIModel
model = OpenAIModel(ModelSettings(base_url=sys.argv[1], name="tiny"))
import_all()
before = set(sys.modules)
asked = [{"role": "user", "content": "hello"}]
model.complete(asked), model.complete(asked, on_text=print), model.models()
print(sorted(set(sys.modules) - before), "openai" in sys.modules)
"""


def test_calls_need_no_sdk_and_import_nothing_once_all_is_imported_that_is_imported_late():
    answers = (said("hi"), streamed({"content": "hi"}))
    with scripted_server(*answers, models=has_models("tiny")) as server:
        command = [sys.executable, "-c", LATER, server.base_url]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert ran.stdout == "hi\n[] False\n"


@pytest.mark.parametrize(
    ("headers", "said_so"),
    [
        ({"retry-after": "0.02"}, "the server is too busy (429); try 2 of 2 in 0.02 s"),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "the server is too busy (429); try 2 of 2"),
        ({"retry-after": "soon"}, "the server is too busy (429); try 2 of 2"),
        ({"retry-after-ms": "nan"}, "the server is too busy (429); try 2 of 2"),
        ({"retry-after": "3600"}, None),
        ({"x-should-retry": "false"}, None),
    ],
)
def test_a_server_says_when_it_is_asked_again_and_whether(headers, said_so):
    told = []
    with scripted_server(Reply(429, {"error": {"message": "later"}}, headers=headers), said("ok")) as server:
        model = model_at(server, max_tries=2)
        with reporting_delays(told.append):
            if said_so:
                assert model.complete(ASKED).text == "ok"
            else:
                with pytest.raises(ModelError, match=r"too busy \(429\)(, after once)?: later\. .*"):
                    model.complete(ASKED)

    assert told == ([said_so] if said_so else [])


def test_a_pause_that_is_too_long_is_said_and_no_more_tries_are_advised():
    later = Reply(429, {"error": {"message": "later"}}, headers={"retry-after": "1800"})
    with scripted_server(later) as server, pytest.raises(ModelError, match=r"again in 1800 s, and not before$"):
        model_at(server, max_tries=1).complete(ASKED)

    assert len(server.requests) == 1


def test_a_refusal_that_is_to_be_sent_again_is():
    with scripted_server(Reply(400, {}, headers={"x-should-retry": "true", **SOON}), said("ok")) as server:
        assert model_at(server).complete(ASKED).text == "ok"


def test_an_answer_that_breaks_off_is_asked_for_again():
    torn = Reply(raw=b'{"choices": [', declared=10_000)
    with scripted_server(torn, said("ok")) as server:
        assert model_at(server).complete(ASKED).text == "ok"

    assert len(server.requests) == 2


def test_an_event_is_read_whole_whatever_it_holds():
    text = "a\u2028b\u0085c\r\n\x1cd"
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    lines = f": comment\r\n\r\ndata:{json.dumps(chunk, ensure_ascii=False)}\r\n\r\ndata: [DONE]\r\n\r\nnot read"
    with scripted_server(Reply(raw=lines.encode(), kind="text/event-stream")) as server:
        assert model_at(server).complete(ASKED, on_text=lambda text: None).text == text


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"choices": {}},
        {"choices": ["x"]},
        {"choices": [{"message": "x"}]},
    ],
)
def test_json_that_is_no_completion_is_an_error(wrong):
    with (
        scripted_server(Reply(body=wrong)) as server,
        pytest.raises(ModelError, match=r"what came back is no chat completion.*ends in /v1"),
    ):
        model_at(server).complete(ASKED)


def test_a_query_of_the_address_is_sent_behind_the_path():
    with scripted_server(said("ok")) as server:
        OpenAIModel(ModelSettings(base_url=f"{server.base_url}/?version=3", name="tiny")).complete(ASKED)

    assert server.paths == ["/v1/chat/completions?version=3"]


@pytest.mark.parametrize("key", ["sk-12345678\nsk-90", "\u201csk-12345678\u201d"])
def test_a_key_that_cannot_be_sent_is_a_configuration_error_that_never_shows_it(key):
    with pytest.raises(ConfigError, match=r"model\.api_key: it holds a character that no key has") as failed:
        OpenAIModel(ModelSettings(api_key=key))

    assert "12345678" not in str(failed.value)


def test_a_model_says_in_a_line_what_it_is_and_costs():
    settings = ModelSettings(base_url="http://localhost:1/v1", name="tiny", prices={"tiny": Price(0.4, 1.6)})

    assert str(OpenAIModel(settings)) == "tiny at http://localhost:1/v1, $0.4 in / $1.6 out for a million tokens"


def test_a_key_that_is_an_ordinary_letter_is_not_masked_in_what_a_server_says():
    with (
        scripted_server(refused(429, "You exceeded your quota.", code="insufficient_quota")) as server,
        pytest.raises(ModelError, match=r"\(429\): You exceeded your quota\. Add credit, or use another key"),
    ):
        OpenAIModel(ModelSettings(base_url=server.base_url, api_key="x", name="tiny")).complete(ASKED)


def test_a_used_up_quota_is_said_at_once_and_not_asked_again():
    refusal = refused(429, "You exceeded your current quota, check your plan", code="insufficient_quota")
    with (
        scripted_server(refusal) as server,
        pytest.raises(ModelError, match=r"no credit is left.*\(429\): You exceeded.* Add credit, or use another key"),
    ):
        model_at(server).complete(ASKED)

    assert len(server.requests) == 1


@pytest.mark.parametrize("streams", [False, True])
def test_why_a_server_is_asked_again_is_told_while_it_is_waited_for(streams):
    later = Reply(429, {"error": {"message": "later"}}, headers={"retry-after-ms": "20"})
    told = []
    with scripted_server(later, refused(503, "no worker"), said("ok")) as server, reporting_delays(told.append):
        model_at(server).complete(ASKED, on_text=(lambda text: None) if streams else None)

    assert told == [
        "the server is too busy (429); try 2 of 4 in 0.02 s",
        "the server failed (503); try 3 of 4 in 0.001 s",
    ]


def test_a_refused_key_is_no_server_that_does_not_run():
    with (
        scripted_server(models=refused(401, "Incorrect API key provided")) as server,
        pytest.raises(ModelError, match=r"the key was refused \(401\)") as failed,
    ):
        model_at(server, api_key="sk-wrong").models()

    assert "running" not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://[::1/v1", "it is no address"),
        ("http://a:b:c/v1", "it is no address"),
        ("http://", "names no server"),
        ("localhost:1234/v1", "has no http"),
    ],
)
def test_an_address_that_is_none_is_an_error_before_a_request(url, words):
    with pytest.raises(ConfigError, match=words):
        OpenAIModel(ModelSettings(base_url=url, name="m"))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("OPENAI_CUSTOM_HEADERS", "x-team: Zürich", "a character that no header has"),
        ("OPENAI_ORG_ID", "Zürich", "a character that no header has"),
        ("OPENAI_CUSTOM_HEADERS", "x team: a", "'x team', which is no name of a header"),
        ("OPENAI_CUSTOM_HEADERS", ": a", "'', which is no name of a header"),
    ],
)
def test_a_variable_that_makes_no_header_is_an_error_in_words(monkeypatch, variable, value, words):
    monkeypatch.setenv(variable, value)

    with pytest.raises(ConfigError, match=f"{variable}: it holds {words}"):
        OpenAIModel(ModelSettings(base_url="http://127.0.0.1:9/v1", name="m")).models()


@pytest.mark.parametrize("address", ["{}\n", " {}", "{} "])
def test_blanks_around_an_address_are_no_part_of_it(address):
    with scripted_server(said("ok")) as server:
        model = OpenAIModel(ModelSettings(base_url=address.format(server.base_url), name="m"))
        assert model.complete(ASKED).text == "ok"

    assert server.paths == ["/v1/chat/completions"]


def test_the_line_end_of_a_file_is_no_part_of_an_organization(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1\n")
    with scripted_server(said("ok")) as server:
        assert model_at(server).complete(ASKED).text == "ok"

    assert server.headers[0]["openai-organization"] == "org-1"


def test_a_request_that_is_no_json_is_an_error_in_words():
    model = OpenAIModel(ModelSettings(base_url="http://127.0.0.1:9/v1", name="m", extra={"top_p": float("nan")}))

    with pytest.raises(ModelError, match="the request can't be written as JSON"):
        model.complete([{"role": "user", "content": "x"}])
