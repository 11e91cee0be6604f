"""No regular expression of the package takes more than about linear time or much memory, whatever text it is tried on.

Each constant one is found in the sources with the methods that call it. Its hostile texts are derived from its own
syntax: a part of what it matches, then another part many times, then an end that it doesn't match.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

try:
    from re import _parser as parser
except ImportError:  # up to Python 3.10
    import sre_parse as parser

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path for base in ("tw_autogen", "plugins", "roles") for path in (ROOT / base).rglob("*.py")
    if "_shipped" not in path.parts
)  # fmt: skip
METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
AT_ONE_PLACE = {"match", "fullmatch"}
SHORT = 1_000
FREE_SECONDS = 0.01
MAX_CHARS, MAX_WAYS = 60, 40
END = "\n\0"
"""Matches next to nothing."""
CLASSES = {
    "CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W",
}  # fmt: skip


@dataclass(frozen=True)
class Used:
    """A regular expression in the sources.

    Args:
        where: File and line.
        call: The expression `re.compile("…")` or `re.search("…", text)`.
        name: What a module calls it; empty: it has no name.
        methods: What the package calls of it; none are seen: any.
    """

    where: str
    call: ast.Call
    name: str
    methods: frozenset[str]

    def pattern(self) -> re.Pattern:
        try:
            return re.compile(ast.literal_eval(self.call.args[0]), constant_flags(self.call))
        except ValueError:  # put together from constants of its module
            module = self.where.split(":")[0].removesuffix(".py").replace("/", ".")
            return getattr(importlib.import_module(module), self.name)


def is_re_call(node: ast.AST) -> bool:
    function = getattr(node, "func", None)
    of_re = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"
    return isinstance(node, ast.Call) and of_re and function.attr in {"compile", *METHODS}


def is_constant(node: ast.AST) -> bool:
    try:
        return ast.literal_eval(node) is not None
    except ValueError:
        return False


def constant_flags(call: ast.Call) -> int:
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "flags")]
    names = {inner.attr for one in given for inner in ast.walk(one) if isinstance(inner, ast.Attribute)}
    return sum(getattr(re, name) for name in names if isinstance(getattr(re, name, None), re.RegexFlag))


def find_patterns() -> list[Used]:
    """Return all but those that are put together inside a function, of escaped names."""
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    trees = {path: ast.parse(text) for path, text in texts.items() if "import re\n" in text}
    found = []
    for path, tree in trees.items():
        named = {
            id(call): target.id for node in tree.body if isinstance(node, ast.Assign)
            for target in node.targets if isinstance(target, ast.Name)
            for call in ast.walk(node) if is_re_call(call)
        }  # fmt: skip
        for node in ast.walk(tree):
            name = named.get(id(node), "")
            if is_re_call(node) and (name or is_constant(node.args[0])):
                pattern = rf"(?<!\w){name}\.({'|'.join(METHODS)})\("
                searched = [texts[path]] if name.startswith("_") else texts.values()
                methods = (
                    {match for text in searched for match in re.findall(pattern, text)} if name else {node.func.attr}
                )
                found.append(Used(f"{path.relative_to(ROOT).as_posix()}:{node.lineno}", node, name, frozenset(methods)))
    return found


def sample(nodes, extra: int) -> str:
    """Return a text that matches parsed nodes, each optional part repeated at least `extra` times where it can be."""
    out = []
    for kind, value in nodes:
        kind = str(kind)
        if kind == "LITERAL":
            out.append(chr(value))
        elif kind == "ANY":
            out.append("a")
        elif kind in ("IN", "NOT_LITERAL"):
            members = value if kind == "IN" else [("NEGATE", None), ("LITERAL", value)]
            members = "".join(map(member, members))
            out.append(next((one for one in "a 1-.\"'\n{[(<\t`:#%~" if re.match(f"[{members}]", one)), "a"))
        elif kind == "BRANCH":
            out.append(sample(value[1][0], extra))
        elif kind == "SUBPATTERN":
            out.append(sample(value[3], extra))
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            out.append(sample(inner, extra) * min(max(least, min(extra, int(most))), 50))
    return "".join(out)


def member(one) -> str:
    kind, value = str(one[0]), one[1]
    if kind == "NEGATE":
        return "^"
    if kind == "CATEGORY":
        return CLASSES[str(value)]
    return "-".join(re.escape(chr(code)) for code in (value if kind == "RANGE" else [value]))


def sequences(nodes) -> Iterator[list]:
    """Return the ways through parsed nodes: each branch, group and repeated part opened once."""
    yield nodes
    for at, (kind, value) in enumerate(nodes):
        inner = {"BRANCH": lambda v: v[1], "SUBPATTERN": lambda v: [v[3]]}.get(str(kind))
        inner = (lambda v: [v[2]]) if str(kind) in ("MAX_REPEAT", "MIN_REPEAT") else inner
        for opened in inner(value) if inner else ():
            for way in sequences(list(opened)):
                yield [*nodes[:at], *way, *nodes[at + 1 :]]


def hostile_parts(pattern: re.Pattern) -> set[tuple[str, str]]:
    """Return pairs of a head and of what to repeat after it: what begins a match, and what repeats inside one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = list(parser.parse(pattern.pattern, pattern.flags & re.VERBOSE))
    found = set()
    for extra, way in itertools.product((1, 0), itertools.islice(sequences(tree), MAX_WAYS)):
        parts = [sample([node], extra) for node in way]
        found |= {("", "".join(parts[:end])) for end in range(1, len(parts) + 1)}
        ranges = ((start, end) for start in range(len(parts)) for end in range(start + 1, start + 4))
        found |= {("".join(parts[:start]), "".join(parts[start:end])) for start, end in ranges}
    return {(head, pump) for head, pump in found if 0 < len(pump) < MAX_CHARS}


def seconds(method: str, pattern: re.Pattern, text: str) -> float:
    text = text.encode() if isinstance(pattern.pattern, bytes) else text
    began = time.process_time()
    if method in AT_ONE_PLACE:
        getattr(pattern, method)(text)
    else:  # what takes long at the first match is no worse for those that go on
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - began


def grows(method: str, pattern: re.Pattern, head: str, pump: str) -> str:
    """Return in words how the time grows, if that is faster than the text; empty if not."""
    size = int(SHORT * len(pump) ** 0.5)

    def took(chars: int) -> float:
        return seconds(method, pattern, head + (pump * (chars // len(pump) + 1))[:chars] + END)

    long = took(4 * size)
    if long < FREE_SECONDS:
        return ""
    short = took(size)
    for more in (0, 2, 4, 8):  # beside other work some times are longer than they are
        short = min([short, *(took(size) for _ in range(more))])
        long = min([long, *(took(4 * size) for _ in range(more))])
        if long <= 8 * short:  # 4 if it is linear, 16 if it is quadratic
            return ""
    return f"{method} of {head!r} + {pump!r}…: {short:.3f} s for {size} characters, {long:.3f} s for four times"


FOUND = find_patterns()

MAX_BYTES_PER_CHAR = 4
LONG = 16_000
SIMPLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}
"""What `re` repeats without keeping a state for each time."""

BOUNDED = {
    r"[a-z][a-z0-9+.-]+://": "at most _LONGEST_PLACE characters of a text in a cell",
    r"\w*(?:\.\w+|": "a field of a format in a cell",
    r"""'''.*?(?:'''""": "an expression in a cell",
    r"^(?:\s*(?:-[nrp]": "a line of a cell",
    r"@\s*[A-Za-z_]": "a text in a cell",
    r"(?<![\w@])@(?P<name>": "a request or an answer",
    r'"[^"\\]*(?:': "a model's reply",
    r"(?P<text>'[^']*'": "an annotation of a plugin",
    r"(?<![\d.])(?<![^\W_": "an answer in a scenario",
    r"[\w*.#][\w*.#-]*(?:": "at most _MAX_SELECTOR_CHARS characters",
}
"""Beginnings of patterns that keep a state for each part of a text, and what bounds the text."""


def keeps_states(nodes) -> bool:
    """Return whether parsed nodes repeat, without a small limit, more than one character or class."""
    for kind, value in nodes:
        if str(kind) in ("MAX_REPEAT", "MIN_REPEAT"):
            _, most, inner = value
            if int(most) > 16 and (len(inner) != 1 or str(inner[0][0]) not in SIMPLE):
                return True
            if keeps_states(inner):
                return True
        inner = {"BRANCH": lambda v: v[1], "SUBPATTERN": lambda v: [v[3]]}.get(str(kind))
        if inner and any(keeps_states(one) for one in inner(value)):
            return True
    return False


def bytes_per_char(pattern: re.Pattern, text: str) -> float:
    """Return the smallest of up to ten: what another thread of the tests takes meanwhile is counted too."""
    least = traced_bytes(pattern, text) / len(text)
    for _ in range(9):
        if least < MAX_BYTES_PER_CHAR:
            break
        time.sleep(0.02)
        least = min(least, traced_bytes(pattern, text) / len(text))
    return least


def traced_bytes(pattern: re.Pattern, text: str) -> int:
    text = text.encode() if isinstance(pattern.pattern, bytes) else text
    tracemalloc.start()
    try:
        pattern.match(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def hungriest(pattern: re.Pattern) -> float:
    """Return how many bytes a match takes for a character of the worst text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not keeps_states(list(parser.parse(pattern.pattern, pattern.flags & re.VERBOSE))):
            return 0.0
    return max(
        bytes_per_char(pattern, head + pump * (LONG // len(pump)) + end)
        for head, pump in hostile_parts(pattern)
        for end in (END, "")
    )


@pytest.mark.parametrize("used", FOUND, ids=lambda used: used.where)
def test_time_grows_with_the_text_only(used):
    pattern = used.pattern()
    for method in sorted({one if one in AT_ONE_PLACE else "search" for one in used.methods or {"search"}}):
        for parts in hostile_parts(pattern):
            assert not grows(method, pattern, *parts), pattern.pattern


@pytest.mark.parametrize("used", FOUND, ids=lambda used: used.where)
def test_a_match_keeps_no_state_for_each_character(used):
    pattern = used.pattern()
    if not isinstance(pattern.pattern, str) or not pattern.pattern.startswith(tuple(BOUNDED)):
        assert hungriest(pattern) < MAX_BYTES_PER_CHAR, pattern.pattern


@pytest.mark.parametrize("text", ["'(?:[^']|'')*'", "(?:ab)*c", r"([-=])\1{2,}$"])
def test_a_pattern_that_keeps_states_is_found(text):
    assert hungriest(re.compile(text)) > 5 * MAX_BYTES_PER_CHAR


def test_only_patterns_that_are_there_are_excepted():
    patterns = [str(one.pattern().pattern) for one in FOUND]

    assert all(any(pattern.startswith(begin) for pattern in patterns) for begin in BOUNDED)


@pytest.mark.parametrize(
    ("text", "method"),
    [("<a>.*?</a>", "search"), (r"\s*x", "search"), (r"(a|b)\d+\d+x", "match"), (r"a[ ]*([^<>]*)>", "match")],
)
def test_a_pattern_that_tries_again_from_each_place_is_found(text, method):
    pattern = re.compile(text, re.S)

    # Ten looks: a busy machine makes times of a few hundredths of a second uneven.
    assert any(grows(method, pattern, *parts) for _ in range(10) for parts in hostile_parts(pattern))


def test_the_patterns_of_the_sources_are_found():
    assert len(FOUND) > 150
    assert {"plugins", "roles", "tw_autogen"} == {one.where.split("/")[0] for one in FOUND}
