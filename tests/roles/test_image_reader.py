import base64
import struct
import zlib

import pytest

from tw_autogen import open_session
from tw_autogen.events import ModelCalled
from tw_autogen.safe_folder import HeldFolder
from tw_autogen.testing import ScriptedModel, check_role, plans


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + pixel + chunk(b"IEND", b"")


URL = "data:image/png;base64," + base64.b64encode(png()).decode()


@pytest.fixture
def pictures(stage):
    (stage.folder / "red.png").write_bytes(png())
    (stage.folder / "wrong.png").write_bytes(b"<svg/>")
    return stage


def test_the_model_sees_the_picture_and_the_planner_reads_its_words(pictures):
    with ScriptedModel(["It is red."]) as model:
        role = pictures.make("image_reader", model)
        said = pictures.ask(role, "Which colour has red.png?").message

    assert said == "Looked at red.png.\n\nIt is red."
    text, image = model.calls[0][1]["content"]
    assert text == {"type": "text", "text": "Pictures: red.png\n\nWhich colour has red.png?"}
    assert image == {"type": "image_url", "image_url": {"url": URL}}
    assert [event.caller for event in pictures.events if isinstance(event, ModelCalled)] == ["ImageReader"]


def test_what_is_left_out_is_said(pictures):
    (pictures.folder / "second.png").write_bytes(png())
    with ScriptedModel(["Red."]) as model:
        role = pictures.make("image_reader", model, max_images=1)
        said = pictures.ask(role, "Compare red.png, second.png and wrong.png").message

    assert said.startswith("Looked at red.png. second.png was left out: 1 pictures at a time. wrong.png was left out: ")
    assert len(model.calls[0][1]["content"]) == 2


def test_one_name_for_thousands_of_files_does_not_have_all_of_them_read(pictures):
    for number in range(1000):
        (pictures.folder / f"d{number}").mkdir()
        (pictures.folder / f"d{number}" / "same.png").write_bytes(b"no picture")
    with ScriptedModel([]) as model:
        said = pictures.ask(pictures.make("image_reader", model), "same.png").message

    assert said.count("was left out") == 40
    assert said.endswith("More pictures were left out.")


@pytest.mark.parametrize(
    ("asked", "settings", "said"),
    [
        ("What is this?", {}, "Name a picture. There are: red.png, wrong.png"),
        ("看看wrong.png里写了什么", {}, "wrong.png was left out: it is no PNG, JPEG, GIF or WebP picture."),
        ("wrong.png", {}, "wrong.png was left out: it is no PNG, JPEG, GIF or WebP picture."),
        ("red.png", {"max_mb": 0.00001}, "red.png was left out: it is larger than 1e-05 MB."),
        ("https://x.example/a.png", {}, "Addresses are not looked at (setting role.image_reader.urls)."),
        (
            "https://x.example/a https://x.example/b",
            {},
            "Addresses are not looked at (setting role.image_reader.urls).",
        ),
    ],
)
def test_when_nothing_can_be_seen_no_model_is_asked(pictures, asked, settings, said):
    with ScriptedModel([]) as model:
        assert pictures.ask(pictures.make("image_reader", model, **settings), asked).message == (
            f"Nothing was looked at. {said}"
        )


def test_an_address_goes_to_the_model_only_where_that_is_allowed(pictures):
    with ScriptedModel(["A map."]) as model:
        role = pictures.make("image_reader", model, urls=True)
        assert "A map." in pictures.ask(role, "See https://maps.example/a.png, please").message

    assert model.calls[0][1]["content"][1]["image_url"]["url"] == "https://maps.example/a.png"


def test_a_name_that_is_kept_in_parts_is_the_one_that_is_typed(pictures):
    (pictures.folder / "red.png").rename(pictures.folder / "u\u0308ber.png")
    with ScriptedModel(["It is red."]) as model:
        said = pictures.ask(pictures.make("image_reader", model), "Was zeigt \u00fcber.png?").message

    assert said.startswith("Looked at \u00fcber.png.")


def test_an_address_ends_before_chinese_signs_and_those_left_out_are_named(pictures):
    with ScriptedModel(["A map."]) as model:
        role = pictures.make("image_reader", model, urls=True, max_images=1)
        said = pictures.ask(role, "看看https://maps.example/a.png，还有https://maps.example/b.png。").message

    assert said.startswith(
        "Looked at https://maps.example/a.png. https://maps.example/b.png was left out: 1 pictures at a time."
    )


def test_pictures_outside_the_folder_are_not_read(stage, tmp_path):
    (tmp_path / "secret.png").write_bytes(png())
    (stage.folder / "link.png").symlink_to(tmp_path / "secret.png")
    with ScriptedModel([]) as model:
        role = stage.make("image_reader", model)
        for name in ("link.png", "../secret.png", str(tmp_path / "secret.png")):
            assert stage.ask(role, name).message.startswith("Nothing was looked at.")


def test_in_a_session_it_has_a_model_of_its_own_and_is_counted(tmp_path):
    (tmp_path / "red.png").write_bytes(png())
    with (
        ScriptedModel([plans("colour of red.png?", to="ImageReader"), plans("Red.", to="User")]) as planner,
        ScriptedModel(["It is red."]) as seeing,
        open_session(
            {"Planner": planner, "ImageReader": seeing}, roles=["planner", "image_reader"], folder=tmp_path / "s"
        ) as session,
    ):
        answer = session.ask("Which colour?", files=[tmp_path / "red.png"])

    assert answer.round.posts[2].message == "Looked at red.png.\n\nIt is red."
    assert answer.usage.calls == 3


def test_it_does_what_every_role_must(stage):
    class Seeing:
        def complete(self, messages, **how):
            return ScriptedModel(["It is red."]).complete(messages)

    files = {"red.png": png()}
    assert check_role(lambda: stage.make("image_reader", Seeing()), ask="red.png?", files=files)


def test_names_that_no_request_holds_cost_nothing(stage, cpu_seconds):
    folder = stage.folder
    for _ in range(6):
        folder /= "d" * 250
    folder.mkdir(parents=True)
    for number in range(300):
        (folder / f"{number}.png").touch()
        (stage.folder / f"{'e' * 200}{number}.png").touch()
    role = stage.make("image_reader", ScriptedModel([]))
    began = cpu_seconds()
    said = stage.ask(role, "look at 1.png").message

    assert said.startswith("Nothing was looked at. Name a picture. There are: eee")
    assert "ddd" not in said
    assert cpu_seconds() - began < 1


def test_a_session_whose_folder_code_of_another_process_exchanges_stays_the_same(pictures, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.png").write_bytes(png())
    with ScriptedModel(["It is red."]) as model, HeldFolder(pictures.folder):
        role = pictures.make("image_reader", model)
        pictures.folder.rename(tmp_path / "gone")
        pictures.folder.symlink_to(tmp_path / "private")

        assert "secret.png was" not in pictures.ask(role, "Look at secret.png").message
        assert pictures.ask(role, "Look at red.png").message == "Looked at red.png.\n\nIt is red."
