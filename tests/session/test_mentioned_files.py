"""Files that a request only names are described and readable as given ones are. Scripted models, fake kernels."""

import contextlib
import dataclasses
import json
import os
import sqlite3
import unicodedata

import pytest

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.conversation import Round, file_names
from tw_autogen.errors import ConfigError
from tw_autogen.events import FileUnreadable
from tw_autogen.kernel import Artifact, KernelSettings
from tw_autogen.model import Usage
from tw_autogen.planner import Planner
from tw_autogen.session import Answer, AnswerFiles, Session, SessionSettings, files_not_made, fork_session
from tw_autogen.session.path_grants import Grants
from tw_autogen.session.working_copies import Copied, stamp, write_copies
from tw_autogen.testing import FakeKernel, ScriptedModel, plans


@pytest.fixture
def users(tmp_path):
    folder = tmp_path.resolve() / "mine"
    (folder / "sub").mkdir(parents=True)
    for name in (
        "sales.csv",
        "销售.csv",
        "sub/deep.csv",
        "my sales.csv",
        "it's (1).csv",
        "north 2024.csv",
        "sub/all of it.csv",
        "passwords.csv",
        ".hidden.csv",
        "package.json",
    ):
        (folder / name).write_text("day,revenue\n1,20\n", encoding="utf-8")
    (tmp_path / "outside.csv").write_text("secret\n1\n", encoding="utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    return folder


@pytest.fixture
def session(tmp_path, users):
    """A session of which each request is answered at once; `session.told` is what the Planner was asked last."""
    (tmp_path / "files").mkdir()
    model = ScriptedModel([plans("Fine.", to="User")] * 9)
    worker = CodeInterpreter(ScriptedModel([]), FakeKernel([], folder=tmp_path / "files"))
    settings = SessionSettings(user_folder=str(users))
    with Session([Planner(model, [worker]), worker], folder=tmp_path / "session", settings=settings) as opened:
        opened.told = lambda: model.calls[-1][-1]["content"]
        yield opened


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("sum of revenue in sales.csv?", "sales.csv"),
        ("sum of revenue in ./sales.csv?", "sales.csv"),
        ("sum of revenue in sub/deep.csv?", "deep.csv"),
        ("sum of revenue in 'my sales.csv'?", "my sales.csv"),
        ("sum of revenue in USERS/sales.csv?", "sales.csv"),
        ("sum of revenue in „my sales.csv“?", "my sales.csv"),
        ("sum of revenue in north 2024.csv?", "north 2024.csv"),
        ("@north 2024.csv: sum?", "north 2024.csv"),
        ("sum of revenue in sub/all of it.csv", "all of it.csv"),
        ('sum of revenue in "it\'s (1).csv"?', "it's (1).csv"),
        ("请问sales.csv里有几行？把结果保存为结果.csv。", "sales.csv"),
        ("请问销售.csv里有几行？", "销售.csv"),
    ],
)
def test_a_named_file_is_described_and_lies_where_code_runs(session, users, words, name):
    session.ask(words.replace("USERS", str(users)))

    assert f"Files in the working folder:\n- {name}: " in session.told()
    assert "revenue" in session.told().split("Files in")[1]
    assert (session.folder / name).read_text() == "day,revenue\n1,20\n"
    assert (session.folder / name).stat().st_mode & 0o200  # the request may ask for a new one under this name


@pytest.mark.parametrize(
    "name", ["passwords.csv", ".hidden.csv", "package.json", "link.csv", "../outside.csv", "~nobody_here/a.csv"]
)
def test_what_is_private_linked_or_outside_is_left_alone(session, name):
    session.ask(f"describe {name}")

    assert "Files in the working folder" not in session.told()
    assert list(session.folder.iterdir()) == []


def test_a_named_file_of_secrets_is_said_to_be_left_alone(session, users):
    events = []
    session.subscribe(events.append)

    session.ask("describe passwords.csv, sales.csv and credentials.csv, which is not there")

    words = (
        "Named like files of secrets, so neither copied nor described unless the User attaches them: 'passwords.csv'."
    )
    assert words in session.told()
    assert [event.problem for event in events if isinstance(event, FileUnreadable)] == [words]
    assert session.missing == ()


@pytest.mark.parametrize("name", ["tokens.csv", "key.csv", "password_survey.csv", "secret_santa.xlsx", "prices.xml"])
def test_a_named_table_that_is_only_called_like_secrets_is_brought(session, users, name):
    (users / name).write_text("day,revenue\n1,20\n", encoding="utf-8")

    session.ask(f"How many rows has {name}?")

    assert [path.name for path in session.folder.iterdir()] == [name]


@pytest.mark.parametrize("name", ["north 2024.csv", "sub/all of it.csv"])
def test_a_name_with_blanks_is_found_without_quotes_again_and_when_code_has_made_it(session, users, name):
    session.ask(f"sum of {name}?")
    plain = name.rpartition("/")[2]
    session.ask(f"sum of {name}?")
    assert f"- {plain}: " in session.told()
    (session.folder / "my result.csv").write_text("made\n", encoding="utf-8")

    session.ask("plot my result.csv")

    assert session.missing == ()


def test_what_is_missing_is_told_with_its_neighbour(session, users):
    session.ask("mean of x in salse.csv?")

    assert f"Not in the User's folder {users}: salse.csv (similar: sales.csv" in session.told()
    assert "passwords" not in session.told()
    assert session.missing == ("salse.csv",)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("'MY SALES.CSV'", "MY SALES.CSV (similar: my sales.csv, sales.csv)"),
        ("MY SALES.CSV", "SALES.CSV (similar: sales.csv, my sales.csv)"),
        ("NORTH 2024.CSV", "2024.CSV (similar: north 2024.csv)"),
        ("zzzzzzzz.tsv", "zzzzzzzz.tsv"),
    ],
)
def test_a_missing_file_is_told_with_names_of_other_case_and_longer_ones(session, users, typed, told):
    session.ask(f"mean of {typed}?")

    (line,) = [one for one in session.told().splitlines() if one.startswith("Not in the User's folder")]
    assert line == f"Not in the User's folder {users}: {told}."


def test_a_file_that_code_has_made_under_the_name_stays(session, users):
    (session.folder / "sales.csv").write_text("made\n", encoding="utf-8")

    session.ask("plot sales.csv")

    assert (session.folder / "sales.csv").read_text() == "made\n"
    assert session.missing == ()


def test_a_file_that_the_user_has_changed_is_brought_again(session, users):
    session.ask("describe sales.csv")
    (users / "sales.csv").write_text("day,revenue,tax\n1,20,3\n", encoding="utf-8")

    session.ask("and now sales.csv?")

    assert "tax" in session.told()


def test_a_given_file_that_the_user_has_changed_is_brought_again_when_it_is_named(session, users):
    session.ask("describe it", [users / "sales.csv"])
    (users / "sales.csv").write_text("day,revenue,tax\n1,20,3\n", encoding="utf-8")

    session.ask("and now sales.csv?")

    assert "tax" in session.told()


RENEWED = "Written since an earlier request, and copied again: 'sales.csv'. What code read before is older."


@pytest.mark.parametrize("how", ["given", "named"])
@pytest.mark.parametrize(
    ("change", "content", "note"),
    [
        ("written", "day,revenue\n1,90\n", RENEWED),
        ("of another size", "day,revenue,tax\n1,20,3\n", RENEWED),
        ("none", "day,revenue\n1,20\n", ""),
        ("removed", "day,revenue\n1,20\n", ""),
        ("by code", "made\n", ""),
        ("unreadable", "day,revenue\n1,20\n", "Written since an earlier request, but here as before: 'sales.csv'."),
    ],
)
def test_an_earlier_requests_file_that_was_written_since_is_copied_again(session, users, how, change, content, note):
    session.ask("describe sales.csv" if how == "named" else "describe it", [users / "sales.csv"] * (how == "given"))
    if change == "removed":
        (users / "sales.csv").unlink()
    elif change == "unreadable":
        (users / "sales.csv").rename(users / "other.csv")
        os.mkfifo(users / "sales.csv")
    elif change != "none":
        (users / "sales.csv").write_text("day,revenue\n1,95\n" if change == "by code" else content, encoding="utf-8")
    if change == "by code":
        (session.folder / "sales.csv").unlink()
        (session.folder / "sales.csv").write_text(content, encoding="utf-8")

    session.ask("What is the mean now?")

    assert (session.folder / "sales.csv").read_text(encoding="utf-8") == content
    assert ("Written since" in session.told()) == bool(note)
    assert note in session.told()
    session.ask("And the median?")
    assert (RENEWED in session.told()) is False


@pytest.mark.parametrize(
    ("requests", "names"),
    [
        (["compare north/a.csv with south/a.csv"], ["north_a.csv", "south_a.csv"]),
        (["sum of north/a.csv", "and of south/a.csv?", "north/a.csv again"], ["a.csv", "south_a.csv"]),
        (["sum of north/a.csv, save it as south/b.csv and north/b.csv"], ["a.csv"]),
    ],
)
def test_files_of_one_name_that_are_named_do_not_replace_each_other(session, users, requests, names):
    for name in ("north", "south"):
        (users / name).mkdir()
        (users / name / "a.csv").write_text(f"{name}\n1\n", encoding="utf-8")

    for request in requests:
        session.ask(request)

    found = {path.name: path.read_text(encoding="utf-8").split()[0] for path in session.folder.iterdir()}
    assert found == dict(zip(names, ("north", "south"), strict=False))
    assert f"- {names[0]}: " in session.told()


@pytest.mark.parametrize("name", ["sales.csv", "nowhere_else.csv"])
def test_a_plain_name_means_what_was_given_under_it_before(session, tmp_path, name):
    given = tmp_path / name
    given.write_text("given\n1\n", encoding="utf-8")
    session.ask("describe it", [given])

    session.ask(f"and now plot {name}")

    assert {path.name: path.read_text() for path in session.folder.iterdir()} == {name: "given\n1\n"}
    assert session.missing == ()


@pytest.mark.parametrize("how", ["resumed", "forked", "forked without words"])
@pytest.mark.parametrize(("by_code", "brought"), [(False, True), (True, False)])
def test_in_a_session_that_is_gone_on_with_a_changed_file_is_brought_again_too(tmp_path, users, how, by_code, brought):
    model, settings = ScriptedModel([plans("Fine.", to="User")] * 2), SessionSettings(user_folder=str(users))
    root = tmp_path.resolve() / "session"
    with Session([Planner(model)], folder=root, settings=settings) as first:
        first.ask("describe sales.csv")
        if by_code:
            (first.folder / "sales.csv").write_text("made\n", encoding="utf-8")
    (users / "sales.csv").write_text("day,revenue,tax\n1,20,3\n", encoding="utf-8")
    if how != "resumed":
        root = fork_session(root, words=how == "forked", trust=True)

    with Session([Planner(model)], folder=root, settings=settings) as session:
        session.ask("and now sales.csv?")

        assert ("tax" in (session.folder / "sales.csv").read_text(encoding="utf-8")) == brought
        assert ("- sales.csv: " in model.calls[-1][-1]["content"]) == brought


def test_a_fork_of_a_folder_that_is_called_as_a_word_leaves_the_words_alone(tmp_path):
    root = tmp_path.resolve() / "umsatz"
    with Session([Planner(ScriptedModel([plans("Der umsatz ist 3.", to="User")]))], folder=root) as first:
        first.ask(f"umsatz je monat? {root}/files/a.csv, nicht {root}2, {first.id}")

    fork = fork_session(root, trust=True)

    said = (fork / "events.jsonl").read_text(encoding="utf-8")
    assert f'"user_query": "umsatz je monat? {fork}/files/a.csv, nicht {root}2, {fork.name}"' in said
    assert "Der umsatz ist 3." in said
    assert f'"folder": "{fork}/files"' in said


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("typed", ["NFC", "NFD"])
def test_a_name_with_accents_is_found_however_it_is_stored(session, users, stored, typed):
    name = unicodedata.normalize("NFC", "Übersicht.csv")
    (users / unicodedata.normalize(stored, name)).write_text("day,revenue\n1,20\n", encoding="utf-8")

    session.ask(f"sum of {unicodedata.normalize(typed, name)}?")
    session.ask("sum it", files=users / unicodedata.normalize(stored, name))

    assert session.missing == ()
    assert [path.name for path in session.folder.iterdir()] == [name]
    assert f"- {name}: " in session.told()


def test_a_file_in_a_subfolder_comes_along_beside_a_given_one_of_its_name(session, users):
    (users / "sub" / "sales.csv").write_text("day,revenue\n1,30\n", encoding="utf-8")
    own = {"sales.csv": "day,revenue\n1,20\n", "sub_sales.csv": "day,revenue\n1,30\n"}

    for files in ([users / "sales.csv"], []):  # the copies keep their names
        session.ask("compare sales.csv with sub/sales.csv", files=files)

        assert {path.name: path.read_text() for path in session.folder.iterdir()} == own
        assert "'sub_sales.csv'" in session.told() or "- sub_sales.csv: " in session.told()
        assert "earlier requests: " not in session.told()


def test_the_users_own_changed_file_comes_beside_what_code_has_written_under_its_name(session, users):
    session.ask("describe sales.csv")
    (session.folder / "sales.csv").write_text("by code\n", encoding="utf-8")
    session.ask("plot sales.csv")
    assert sorted(path.name for path in session.folder.iterdir()) == ["sales.csv"]

    for revenue in (30, 4000):
        (users / "sales.csv").write_text(f"day,revenue\n1,{revenue}\n", encoding="utf-8")
        session.ask("sum of revenue in sales.csv?")

        assert (session.folder / "sales.csv").read_text() == "by code\n"
        assert (session.folder / "mine_sales.csv").read_text() == f"day,revenue\n1,{revenue}\n"
        assert "- mine_sales.csv: " in session.told()
        assert "'mine_sales.csv' is the User's own file as it is now; 'sales.csv' is what code has" in session.told()


@pytest.mark.parametrize("record", [b"", b"[]", b'{"sales.csv": 1}', b'{"sales.csv": {"source": "a", "was": [1]}}'])
def test_a_damaged_record_of_copies_is_as_good_as_none(tmp_path, users, record):
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "copies.json").write_bytes(record)
    model, settings = ScriptedModel([plans("Fine.", to="User")]), SessionSettings(user_folder=str(users))

    with Session([Planner(model)], folder=tmp_path / "session", settings=settings) as session:
        session.ask("describe sales.csv")

        assert (session.folder / "sales.csv").exists()


def test_a_named_file_is_renewed_over_no_link_whatever_mode_code_has_given_its_copy(session, users, tmp_path):
    session.ask("describe sales.csv")
    copy = session.folder / "sales.csv"
    copy.chmod(0o444)
    (users / "sales.csv").unlink()
    (users / "sales.csv").symlink_to(tmp_path / "outside.csv")

    session.ask("go on")

    assert copy.read_text(encoding="utf-8") == "day,revenue\n1,20\n"


@pytest.mark.parametrize("seal", ["", '"seal": "0"', "of another folder", "by another user"])
def test_a_record_of_copies_that_somebody_else_wrote_hands_out_no_file(tmp_path, users, monkeypatch, seal):
    """A program that may write to the session's folder names a file of the user's for which it has put a "copy"."""
    root, secret = tmp_path / "session", tmp_path / "secret"
    (root / "files").mkdir(parents=True)
    secret.write_text("canary")
    planted = root / "files" / "c.txt"
    planted.write_bytes(b"x")
    planted.chmod(0o444)
    record = {"c.txt": Copied(str(secret), (0, 0), stamp(planted.stat()), given=True)}
    if seal == "of another folder":
        (tmp_path / "other").mkdir()
        write_copies(tmp_path / "other", record)
        (tmp_path / "other/copies.json").rename(root / "copies.json")
    elif seal == "by another user":
        with monkeypatch.context() as patch:
            patch.setattr("tw_autogen.owner_marks.user_key", lambda: b"k" * 32)
            write_copies(root, record)
    else:
        plain = {name: dataclasses.asdict(copy) for name, copy in record.items()}
        (root / "copies.json").write_text(json.dumps(plain)[:-1] + (f", {seal}" if seal else "") + "}")
    worker = CodeInterpreter(ScriptedModel([]), FakeKernel([], folder=root / "files"))
    planner, settings = (
        Planner(ScriptedModel([plans("Fine.", to="User")]), [worker]),
        SessionSettings(user_folder=str(users)),
    )

    with Session([planner, worker], folder=root, settings=settings) as session:
        session.ask("describe sales.csv")

        assert planted.read_bytes() == b"x"
        assert (session.folder / "sales.csv").exists()


def test_a_large_file_is_not_copied(session, users):
    with (users / "large.bin.csv").open("wb") as file:
        file.truncate(50_000_001)

    session.ask("describe large.bin.csv")

    assert list(session.folder.iterdir()) == []


def test_a_large_file_is_read_where_it_was_found_whatever_code_puts_above_it_then(tmp_path, users):
    """Plays what code of another process's kernel, which may write above the user's folder, does meanwhile."""
    secret = tmp_path / "secret"
    for folder in (users, secret):
        folder.mkdir(exist_ok=True)
        with (folder / "large.csv").open("wb") as file:
            file.truncate(50_000_001)

    class Exchanging(FakeKernel):
        shown = ()

        def show(self, path):
            self.shown = (*self.shown, path)
            if not users.is_symlink():
                users.rename(tmp_path / "moved")
                users.symlink_to(secret)
            return True

    kernel = Exchanging([], folder=tmp_path / "files")
    kernel.folder.mkdir()
    worker = CodeInterpreter(ScriptedModel([]), kernel)
    how = {
        "settings": SessionSettings(user_folder=str(users)),
        "grants": Grants(KernelSettings(read=(str(users),)), kernel),
    }
    model = ScriptedModel([plans("Fine.", to="User")])
    with Session([Planner(model, [worker]), worker], folder=tmp_path / "session", **how) as session:
        session.ask("show large.csv")

    assert kernel.shown == (users / "large.csv",)
    assert list(kernel.folder.iterdir()) == []


def test_a_given_file_is_brought_once(session, users):
    session.ask("describe sales.csv", [users / "sales.csv"])

    assert session.told().count("- sales.csv: ") == 1


@pytest.mark.parametrize(
    ("request_", "reported"),
    [
        ("Save the table as Übersicht MSFT.csv", []),
        ("Describe @app log.jsonl", []),
        ("Save it as MSFT.csv", ["MSFT.csv"]),
        ("Join Übersicht MSFT.csv with log.jsonl", ["log.jsonl"]),
    ],
)
def test_a_name_with_blanks_is_not_reported_by_its_end(tmp_path, request_, reported):
    (tmp_path / "app log.jsonl").touch()
    made = Artifact("o", "df", tmp_path / "files" / "Übersicht MSFT.csv")
    answer = Answer(request_, (made,), "Completed", Usage(), Round(request_))

    lines = files_not_made(file_names(request_), answer, AnswerFiles(tmp_path))

    assert [line.partition(":")[0] for line in lines] == reported


def test_without_a_folder_of_the_users_nothing_is_looked_for(tmp_path, users, monkeypatch):
    monkeypatch.chdir(users)
    with ScriptedModel([plans("Fine.", to="User")]) as model, Session([Planner(model)]) as opened:
        opened.landing = AnswerFiles(users)
        answer = opened.ask("describe sales.csv, save it as copy.csv")

        assert [line.partition(":")[0] for line in files_not_made(opened.missing, answer, opened.landing)] == [
            "copy.csv"
        ]

        assert list(opened.folder.iterdir()) == []
    assert "revenue" not in str(model.calls[0][1:])


def test_a_link_to_another_folder_that_comes_later_is_not_followed(session, users, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "sales.csv").write_text("a,b\n1,AB12\n")
    users.rename(tmp_path / "gone")
    users.symlink_to(tmp_path / "private")

    for name in ("sales.csv", "sale.csv"):
        session.ask(f"sum of revenue in {name}?")
        assert "similar" not in session.told()
    assert not (session.folder / "sales.csv").exists()


def written_log(folder):
    """Make a database whose last row is in its log alone; return the connection that keeps it there."""
    shop = sqlite3.connect(folder / "shop.db")
    shop.execute("PRAGMA journal_mode=wal")
    shop.execute("CREATE TABLE t (a)")
    shop.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shop.execute("INSERT INTO t VALUES (1)")
    shop.commit()
    return shop


def test_a_given_database_of_which_a_part_is_in_its_log_is_an_error_that_names_a_way(session, users, tmp_path):
    with contextlib.closing(written_log(users)):
        with pytest.raises(
            ConfigError, match=r"shop\.db: what was written last is still in .*shop\.db-wal.*VACUUM INTO"
        ):
            session.ask("Sum of a?", files=[users / "shop.db"])
        (tmp_path / "latest.db").symlink_to(users / "shop.db")
        with pytest.raises(ConfigError, match=r"shop\.db: what was written last is still in"):
            session.ask("Sum of a?", files=[tmp_path / "latest.db"])
        session.ask("I have renamed shop.db; what is 2 + 2?")

        assert list(session.folder.iterdir()) == []

    session.ask("Sum of a in shop.db?")

    assert "table 't': 1 rows" in session.told()


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_what_lies_beside_a_database_is_looked_at_over_no_link(session, users, tmp_path, end):
    with contextlib.closing(written_log(users)):
        os.mkfifo(tmp_path / "canary")
        (users / f"shop.db{end}").unlink()
        (users / f"shop.db{end}").symlink_to(tmp_path / "canary")

        session.ask("Sum of a in shop.db?")
        assert list(session.folder.iterdir()) == []
        with pytest.raises(ConfigError, match=rf"shop\.db{end}: a link"):
            session.ask("Sum of a?", files=[users / "shop.db"])


def test_a_log_that_is_written_back_whole_lacks_nothing(session, users):
    with contextlib.closing(written_log(users)) as shop:
        shop.execute("PRAGMA wal_checkpoint(FULL)")
        assert (users / "shop.db-wal").stat().st_size

        session.ask("Sum of a?", files=[users / "shop.db"])

        assert "table 't': 1 rows" in session.told()
