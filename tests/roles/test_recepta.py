from tw_autogen.testing import check_role


def test_a_note_is_taken_and_nothing_else_happens(stage):
    role = stage.make("recepta")

    assert stage.ask(role, "The key is AB12.").message == "Noted. Go on with the plan."
    assert stage.ask(role, "  ").message.startswith("There was nothing to note")
    assert stage.board(role) == ""


def test_notes_are_pinned_one_below_the_other_where_that_is_wanted(stage):
    role = stage.make("recepta", pin=True, answer="Go on.")

    assert [stage.ask(role, text).message for text in ("first", "second")] == ["Go on.", "Go on."]
    assert stage.board(role) == "Notes:\n- first\n- second"


def test_it_does_what_every_role_must(stage):
    assert check_role(lambda: stage.make("recepta", pin=True), ask="think")
