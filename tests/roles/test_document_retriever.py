import json

import pytest

from tw_autogen import DocumentIndex
from tw_autogen.errors import ConfigError
from tw_autogen.testing import check_role


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "refunds.md").write_text(
        "# Refunds\n\nA refund is paid within 14 days.\n\n## Gift cards\n\nGift cards are not refunded.\n"
    )
    (folder / "delivery.txt").write_text("Parcels leave the warehouse on Mondays.\n\nLetters leave daily.\n")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    return folder


@pytest.fixture
def index(docs):
    return DocumentIndex.build(docs).write()


def test_passages_come_with_file_lines_and_heading(stage, index):
    role = stage.make("document_retriever", index=str(index), size=1, target_chars=0)

    post = stage.ask(role, "How many days does a refund take?")

    assert post.message == (
        "1 of 3 passages from 2 documents, best first:\n\n"
        "[1] shop/refunds.md, lines 1-3\n1: # Refunds\n2: \n3: A refund is paid within 14 days."
    )
    assert post.attachments[0].extra == [{"number": 1, "file": "shop/refunds.md", "lines": [1, 3]}]


def test_a_heading_is_named_where_the_passage_does_not_hold_it(stage, tmp_path):
    folder = tmp_path / "long"
    folder.mkdir()
    (folder / "rules.md").write_text("# Refunds\n\n" + "Money comes back. " * 60 + "\n\nA parcel takes 14 days.\n")
    index = DocumentIndex.build(folder).write()
    role = stage.make("document_retriever", index=str(index), size=1, target_chars=0)

    assert '[1] rules.md, lines 3-5 (under "Refunds")' in stage.ask(role, "How many days does a parcel take?").message


def test_a_passage_grows_by_its_neighbours_of_the_same_document(stage, docs, index):
    role = stage.make("document_retriever", index=str(docs), size=5, target_chars=4000)

    post = stage.ask(role, "refund of gift cards")

    assert "[1] shop/refunds.md, lines 1-7" in post.message
    assert "Gift cards are not refunded." in post.message
    assert "[2]" not in post.message


def test_when_nothing_fits_the_documents_are_named(stage, index):
    role = stage.make("document_retriever", index=str(index))

    assert stage.ask(role, "volcanoes").message == (
        "Nothing fits in the 2 documents. Say it in other words. They are: delivery.txt, shop/refunds.md"
    )


def test_a_passage_of_a_changed_document_is_marked(stage, docs, index):
    role = stage.make("document_retriever", index=str(index), size=1)
    (docs / "delivery.txt").write_text("Closed.")

    assert "delivery.txt, lines 1-3; changed since it was indexed\n" in stage.ask(role, "parcels on Mondays").message
    (docs / "delivery.txt").unlink()
    assert "delivery.txt, lines 1-3; no longer there\n" in stage.ask(role, "parcels on Mondays").message


def test_passages_are_found_by_embeddings_where_a_ranker_has_them(stage, index):
    class Seeing:
        def prepare(self, texts):
            pass

        def rank(self, query, texts):
            return [(at, 1.0) for at, text in enumerate(texts) if "Gift" in text]

    role = stage.make("document_retriever", index=str(index), more={"ranker": Seeing()}, size=1, target_chars=0)

    assert "Gift cards" in stage.ask(role, "volcanoes").message


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, r"tw-index\.json: there is no index; make one with: tw-autogen index "),
        ("[]", r"tw-index\.json: no index of documents"),
        ('{"format": 9}', r"format 9, and this version reads 1"),
        ("\x80", r"tw-index\.json: no index of documents"),
    ],
)
def test_a_missing_or_broken_index_is_said_when_the_session_opens(stage, docs, content, problem):
    if content is not None:
        (docs / "tw-index.json").write_text(content, encoding="latin-1")

    with pytest.raises(ConfigError, match=problem):
        stage.make("document_retriever", index=str(docs))


def test_an_index_must_be_named(stage):
    with pytest.raises(
        ConfigError,
        match=r"the setting 'role\.document_retriever\.index' is missing; make an index with `tw-autogen index DIR`",
    ):
        stage.make("document_retriever")


def test_the_index_is_readable_json_with_a_passage_a_line(docs, index):
    lines = index.read_text(encoding="utf-8").splitlines()
    plain = json.loads("\n".join(lines))

    assert plain["folder"] == "."
    assert list(plain["files"]) == ["delivery.txt", "shop/refunds.md"]
    assert sum(line.startswith('{"file"') for line in lines) == len(plain["passages"]) == 3
    assert DocumentIndex.read(index) == DocumentIndex.build(docs)


def test_it_does_what_every_role_must(stage, index):
    assert check_role(lambda: stage.make("document_retriever", index=str(index)), ask="refunds")
