import json
import threading
from urllib.parse import parse_qs, urlsplit

import pytest

from tw_autogen.errors import RoleSpecError
from tw_autogen.testing import check_role

from . import web

SEARXNG = {
    "query": "tea",
    "results": [
        {"title": "Green <b>tea</b>", "url": "https://tea.example/green", "content": "Steep at 70&nbsp;degrees."},
        {"title": "Bad", "url": "javascript:alert(1)", "content": "no"},
        {"title": "Black tea", "url": "https://tea.example/black", "content": None},
    ],
}
BRAVE = {"web": {"results": [{"title": "Tea", "url": "https://tea.example/", "description": "All <em>about</em> it."}]}}


def answering(plain, **how):
    return web.Page(plain if isinstance(plain, str) else json.dumps(plain), kind="application/json", **how)


def test_a_searxng_is_asked_and_results_have_numbers_and_addresses(stage):
    with web.site({"/search": answering(SEARXNG)}) as engine:
        post = stage.ask(stage.make("web_search", url=f"{engine.url}/search?language=de"), "tea temperature")

    assert post.message == (
        "tea temperature: 2 results from 127.0.0.1\n\n"
        "[1] Green tea\nhttps://tea.example/green\nSteep at 70 degrees.\n\n"
        "[2] Black tea\nhttps://tea.example/black"
    )
    assert [one["url"] for one in post.attachments[0].extra] == [
        "https://tea.example/green",
        "https://tea.example/black",
    ]
    assert parse_qs(urlsplit(engine.asked[0]).query) == {
        "language": ["de"],
        "q": ["tea temperature"],
        "format": ["json"],
    }
    assert "cookie" not in engine.headers[0]


def test_brave_is_asked_with_a_key_that_is_shown_nowhere(stage, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "sk-secret")
    with web.site({"/res": answering(BRAVE)}) as engine:
        role = stage.make("web_search", url=f"{engine.url}/res", kind="brave", key_env="SEARCH_KEY", results=1)
        post = stage.ask(role, "tea")

    assert "[1] Tea\nhttps://tea.example/\nAll about it." in post.message
    assert engine.headers[0]["x-subscription-token"] == "sk-secret"
    assert parse_qs(urlsplit(engine.asked[0]).query) == {"q": ["tea"], "count": ["1"]}
    assert "sk-secret" not in json.dumps(post.to_dict())


def test_each_line_is_a_search_and_numbers_run_on(stage):
    with web.site({"/search": answering(SEARXNG)}) as engine:
        said = stage.ask(stage.make("web_search", url=f"{engine.url}/search"), "green tea\n\nblack tea").message

    assert len(engine.asked) == 2
    assert [f"[{at}]" in said for at in range(1, 6)] == [True, True, True, True, False]


def test_searches_beyond_the_first_four_are_named(stage):
    with web.site({"/search": answering({"results": []})}) as engine:
        said = stage.ask(stage.make("web_search", url=f"{engine.url}/search"), "a\nb\nc\nd\ne\nf").message

    assert len(engine.asked) == 4
    assert said.endswith("d: nothing found\n\nNot searched for, 4 searches at a time: e; f")


def test_a_brave_that_has_found_nothing_says_nothing_of_the_web(stage):
    plain = {"type": "search", "query": {"original": "tea"}, "mixed": {"type": "mixed"}}
    with web.site({"/res": answering(plain)}) as engine:
        said = stage.ask(stage.make("web_search", url=f"{engine.url}/res", kind="brave"), "tea").message

    assert said == "tea: nothing found"


def test_a_line_end_around_a_key_is_no_part_of_it(stage, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "abc\n")
    with web.site({"/search": answering(SEARXNG)}) as engine:
        stage.ask(stage.make("web_search", url=f"{engine.url}/search", key_env="SEARCH_KEY"), "tea")

    assert engine.headers[0]["authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (answering("nothing", status=429), "127.0.0.1 answered 429 Too Many Requests"),
        (answering("no", status=403), "127.0.0.1 answered 403 Forbidden (does its search.formats have json?)"),
        (answering("", status=302, headers={"Location": "http://elsewhere.example/"}), "127.0.0.1 answered 302 Found"),
        (answering("<html>"), "127.0.0.1 answered with something else than searxng's JSON"),
        (answering({"results": 3}), "127.0.0.1 answered with something else than searxng's JSON"),
        (answering({"results": []}), "nothing found"),
        (
            answering({"results": [{"url": "http://[odd/"}]}),
            "1 result from 127.0.0.1\n\n[1] http://[odd/\nhttp://[odd/",
        ),
        (answering("[" * 90_000), "127.0.0.1 answered with something else than searxng's JSON"),
        (answering("x" * 200_000), "127.0.0.1 answered with more than 0.1 MB"),
    ],
)
def test_what_goes_wrong_is_said_and_ends_nothing(stage, page, problem):
    with web.site({"/search": page}) as engine:
        role = stage.make("web_search", url=f"{engine.url}/search", max_mb=0.1)
        assert stage.ask(role, "tea").message == f"tea: {problem}"


def test_a_silent_engine_is_given_up_and_a_missing_one_is_said(stage):
    with web.site({"/search": answering(SEARXNG, hold=threading.Event())}) as engine:
        role = stage.make("web_search", url=f"{engine.url}/search", seconds=0.3)
        assert stage.ask(role, "tea").message == "tea: 127.0.0.1 did not answer within 0.3 s"

    assert stage.ask(role, "tea").message.startswith("tea: 127.0.0.1 can't be reached (Connect")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, r"the setting 'role\.web_search\.url' is missing"),
        ({"url": "ftp://x.example"}, r"role\.yaml: url: 'ftp://x\.example' is no http:// or https:// address"),
        ({"url": "http://localhost:abc/"}, r"role\.yaml: Port could not be cast to integer value as 'abc'"),
        ({"url": "http://x.example", "key_env": "ODD_KEY"}, r"key_env: ODD_KEY holds a character that no key has"),
        ({"url": "http://x.example", "key_env": "NO_SUCH_KEY"}, r"key_env: there is no NO_SUCH_KEY in the environment"),
    ],
)
def test_wrong_settings_are_said_when_the_session_opens(stage, settings, problem, monkeypatch):
    monkeypatch.setenv("ODD_KEY", "schlüssel")
    with pytest.raises(RoleSpecError, match=problem):
        stage.make("web_search", **settings)


def test_it_does_what_every_role_must(stage):
    with web.site({"/search": answering(SEARXNG)}) as engine:
        assert check_role(lambda: stage.make("web_search", url=f"{engine.url}/search"), ask="tea")
