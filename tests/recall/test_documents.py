import json
import os
import tracemalloc

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.model import LexicalRanker
from tw_autogen.recall import DocumentIndex, Passage
from tw_autogen.safe_folder import SafeFolder

LONG = "\n".join(
    f"# Part {part}\n\n" + "\n\n".join(f"Paragraph {part}.{at} of the text." for at in range(9)) for part in range(5)
)


def lines_of(folder, one):
    return "\n".join((folder / one.file).read_text(encoding="utf-8").splitlines()[one.first - 1 : one.last])


@pytest.mark.parametrize("chars", [30, 80, 200, 10_000])
def test_passages_are_the_lines_that_they_say_and_leave_nothing_out(tmp_path, chars):
    (tmp_path / "long.md").write_text(LONG)

    index = DocumentIndex.build(tmp_path, passage_chars=chars)

    assert [passage.text for passage in index.passages] == [lines_of(tmp_path, passage) for passage in index.passages]
    assert "".join("".join(passage.text.split()) for passage in index.passages) == "".join(LONG.split())
    assert all(len(passage.text) <= chars for passage in index.passages)
    assert {passage.heading for passage in index.passages} == {f"Part {part}" for part in range(5)}


def test_lines_are_counted_as_editors_do_and_comments_in_code_are_no_headings(tmp_path):
    (tmp_path / "rfc.md").write_text("# Guide\n\nPage 1.\f\n\f\n```sh\n# fetch keys\nget\n```\n\nThe refund.\n")

    index = DocumentIndex.build(tmp_path, passage_chars=30)

    assert {passage.heading for passage in index.passages} == {"Guide"}
    assert [passage.last for passage in index.passages if "refund" in passage.text] == [10]


def test_a_line_that_is_too_long_is_parted_and_keeps_its_number(tmp_path):
    (tmp_path / "one.txt").write_text("short\n\n" + "word " * 100)

    index = DocumentIndex.build(tmp_path, passage_chars=120)

    assert {(passage.first, passage.last) for passage in index.passages} == {(1, 1), (3, 3)}
    assert all(len(passage.text) <= 120 for passage in index.passages)


def test_a_long_line_is_cut_between_words_and_grows_together_as_it_was(tmp_path):
    line = " ".join(f"temperature{number}" for number in range(200)) + " " + "x" * 700
    (tmp_path / "one.md").write_text(f"First.\n{line}\nLast.\n")

    index = DocumentIndex.build(tmp_path, passage_chars=300)

    words = {word for passage in index.passages for word in passage.text.split()}
    assert {word for word in line.split() if len(word) <= 300} <= words
    assert all(len(passage.text) <= 300 for passage in index.passages)
    (found,) = index.search("temperature77", LexicalRanker(), top_k=1, around_chars=10_000)
    assert found.text == f"First.\n{line}\nLast."


def test_a_heading_ends_with_its_own_signs(tmp_path):
    (tmp_path / "one.md").write_text("# C#\na\n## F# ##\nb\n## Done ##  \nc\n### #\nd\n")

    assert [passage.heading for passage in DocumentIndex.build(tmp_path).passages] == ["C#", "F#", "Done", "#"]


def test_passages_that_grow_together_are_given_once(tmp_path):
    (tmp_path / "long.md").write_text(LONG)
    index = DocumentIndex.build(tmp_path, passage_chars=60)

    found = index.search("Paragraph 2.1 2.2 2.3", LexicalRanker(), top_k=8, around_chars=300)

    covered = [line for one in found for line in range(one.first, one.last + 1)]
    assert len(covered) == len(set(covered))
    assert [one.text for one in found] == [lines_of(tmp_path, one).strip("\n") for one in found]


def test_hidden_files_sessions_links_out_and_what_is_no_text_are_left_out(tmp_path):
    docs = tmp_path / "docs"
    (docs / ".git").mkdir(parents=True)
    (docs / "ws" / "session-1" / "files").mkdir(parents=True)
    (docs / "ws" / "session-1" / "events.jsonl").touch()
    (docs / "ws" / "session-1" / "files" / "notes.md").write_text("of a client")
    (docs / ".git" / "notes.md").write_text("hidden")
    (tmp_path / "secret.md").write_text("secret")
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    (docs / "odd.txt").write_bytes(b"\xff\xfe")
    (docs / "good.md").write_text("good")

    index = DocumentIndex.build(docs)

    assert index.passages == (Passage("good.md", 1, 1, "good"),)
    assert [one.partition(":")[0] for one in index.skipped] == ["link.md", "odd.txt"]


@pytest.mark.parametrize(
    "content", ["\0" * 100_000, "# a\n\nb\n\n" * 5000, "words " * 100_000], ids=["NUL", "many", "large"]
)
def test_all_documents_of_an_index_are_bounded_together_and_the_rest_is_named(tmp_path, monkeypatch, content):
    monkeypatch.setattr("tw_autogen.recall.documents._MAX_TOGETHER", 2_000_000)
    for number in range(10):
        (tmp_path / f"m{number}.md").write_text(content)
    (tmp_path / "z.md").write_text("small")

    index = DocumentIndex.build(tmp_path)

    there = [*index.files]
    assert 2 <= len(there) <= 5
    assert there[-1] == "z.md"
    assert len({passage.file for passage in index.passages}) == len(there)
    assert len(there) + len(index.skipped) == 11
    assert all("with it the index would exceed 200 MB" in one for one in index.skipped)
    assert index.write().stat().st_size < 2_000_000
    assert DocumentIndex.read(tmp_path).passages == index.passages


def test_documents_that_have_grown_are_named_and_never_held_together(tmp_path):
    for number in range(20):
        (tmp_path / f"m{number}.md").write_text("some words")
    index = DocumentIndex.build(tmp_path)
    for number in range(20):
        os.truncate(tmp_path / f"m{number}.md", 2_000_000)

    tracemalloc.start()
    try:
        changed = index.changed()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sorted(changed) == sorted(index.files)
    assert peak < 20_000_000


@pytest.mark.parametrize("chars", [0, -1])
def test_a_passage_has_a_character_at_least(tmp_path, chars):
    (tmp_path / "a.md").write_text("text")

    with pytest.raises(ConfigError, match=f"passage_chars: expected at least 1, got {chars}"):
        DocumentIndex.build(tmp_path, passage_chars=chars)


def test_what_cannot_be_indexed_is_said(tmp_path):
    with pytest.raises(ConfigError, match="there is no such folder"):
        DocumentIndex.build(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"no text in files named \*\.md, \*\.txt, \*\.rst"):
        DocumentIndex.build(tmp_path)


def test_an_index_that_lies_elsewhere_knows_its_folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.md").write_text("Steep it.")
    file = DocumentIndex.build(tmp_path / "docs").write(tmp_path / "out" / "tea.json")

    index = DocumentIndex.read(file)

    assert index.folder == (tmp_path / "docs").resolve()
    assert index.changed() == []
    (tmp_path / "docs" / "tea.md").unlink()
    assert index.changed() == ["tea.md"]


@pytest.mark.parametrize("where", ["elsewhere", "above", "by name", "changed"])
def test_an_index_of_somebody_else_says_nothing_of_files_outside_of_its_folder(tmp_path, where):
    docs, private = tmp_path / "docs", tmp_path / "private"
    for one in (docs, private):
        one.mkdir()
        (one / "tea.md").write_text("pin=1234\n")
    index = DocumentIndex.build(docs).write(docs / "i.json" if where == "by name" else tmp_path / "out" / "i.json")
    plain = json.loads(index.read_text())
    if where == "by name":
        plain["files"] = {"../private/tea.md": plain["files"]["tea.md"], str(private / "gone.md"): "0"}
    elif where == "changed":
        plain["files"]["guess.md"] = "0"
    else:
        plain["folder"] = "../private" if where == "above" else str(private)

    def said(guess):
        index.write_text(json.dumps({**plain, "files": {name: guess for name in plain["files"]}}))
        read = DocumentIndex.read(index)
        return read.changed(), read.gone()

    right = said(plain["files"].get("tea.md", plain["files"].get("../private/tea.md")))
    wrong = said("0" * 16)
    (private / "tea.md").unlink()
    (docs / "tea.md").unlink()

    assert right == wrong == said("0" * 16)
    assert DocumentIndex.read(index).passages


@pytest.mark.parametrize("there", [True, False])
def test_an_index_is_written_through_no_link(tmp_path, there):
    precious, docs = tmp_path / "precious.json", tmp_path / "docs"
    docs.mkdir()
    (docs / "tea.md").write_text("# Tea\nGreen.\n")
    if there:
        precious.write_text("precious")
    (docs / "tw-index.json").symlink_to(precious)

    file = DocumentIndex.build(docs).write()

    assert not file.is_symlink()
    assert precious.exists() == there
    assert not there or precious.read_text() == "precious"
    assert DocumentIndex.read(docs).passages
    assert sorted(path.name for path in docs.iterdir()) == ["tea.md", "tw-index.json"]


def test_an_index_in_a_named_folder_that_is_a_link_is_refused_and_its_target_can_be_named(tmp_path):
    docs, elsewhere = tmp_path / "docs", tmp_path / "elsewhere"
    for folder in (docs, elsewhere):
        folder.mkdir()
    (elsewhere / "tea.md").write_text("# Green tea\n")
    file = DocumentIndex.build(elsewhere).write()
    (docs / "tw-index.json").symlink_to(file)

    with pytest.raises(ConfigError, match="is a link to .*elsewhere/tw-index.json; if you know it, name that file"):
        DocumentIndex.read(docs)

    assert DocumentIndex.read(file).passages


def test_an_index_is_read_and_written_over_no_link_that_came_meanwhile(tmp_path, monkeypatch):
    docs, private = tmp_path / "here" / "sub" / "docs", tmp_path / "private" / "docs"
    for folder in (docs, private):
        folder.mkdir(parents=True)
        (folder / "tea.md").write_text("# Green tea\n")
    monkeypatch.chdir(tmp_path / "here")
    index = DocumentIndex.build("sub/docs")
    (tmp_path / "here" / "sub").rename(tmp_path / "gone")
    (tmp_path / "here" / "sub").symlink_to(private.parent)

    with pytest.raises(ConfigError, match="sub is a link"):
        index.write()
    with pytest.raises(ConfigError, match="sub is a link"):
        DocumentIndex.build("sub/docs")
    assert [path.name for path in private.iterdir()] == ["tea.md"]


def planted(folder, **more):
    """Write an index that somebody has made by hand."""
    passages = [{"file": "a.md", "lines": [1, 1], "text": "beavers"}]
    plain = {"format": 1, "folder": ".", "files": {"a.md": "0"}, "passages": passages, **more}
    (folder / "tw-index.json").write_text(json.dumps(plain), encoding="utf-8")


def test_passages_that_say_they_lie_far_apart_do_not_grow_together(tmp_path):
    far = [{"file": "a.md", "lines": [at, at], "text": text} for at, text in ((1, "beavers"), (10**9, "dams"))]
    planted(tmp_path, passages=far)

    (found,) = DocumentIndex.read(tmp_path).search("beavers", LexicalRanker(), around_chars=4000)

    assert (found.text, found.last) == ("beavers", 1)


@pytest.mark.parametrize(
    "passage", [{"lines": ["1", "2"]}, {"lines": [1]}, {"text": 7}, {"heading": []}, {"file": None}]
)
def test_a_passage_that_is_none_is_an_error_of_the_index(tmp_path, passage):
    planted(tmp_path, passages=[{"file": "a.md", "lines": [1, 1], "text": "beavers", **passage}])

    with pytest.raises(ConfigError, match=r"tw-index\.json: no index of documents"):
        DocumentIndex.read(tmp_path)


def test_what_is_no_text_is_read_only_so_often(tmp_path, monkeypatch):
    monkeypatch.setattr("tw_autogen.recall.documents._MAX_TOGETHER", 10_000)
    for number in range(30):
        (tmp_path / f"{number:02}.md").write_bytes(b"\xff" * 1000)
    (tmp_path / "good.md").write_text("beavers", encoding="utf-8")
    planted(tmp_path, files={f"{'./' * number}00.md": "0" for number in range(300)})
    read, whole = [], SafeFolder.read_file

    def count(folder, name, **how):
        read.append(name)
        return whole(folder, name, **how)

    monkeypatch.setattr(SafeFolder, "read_file", count)

    assert len(DocumentIndex.read(tmp_path).changed()) == 300
    assert len(read) == 10
    read.clear()
    with pytest.raises(ConfigError, match="no text in files"):
        DocumentIndex.build(tmp_path, globs=["0*.md", "1*.md", "2*.md"])
    assert len(read) == 10
