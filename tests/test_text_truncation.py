"""Parts of long texts: paragraphs that a reader has seen are named instead of repeated, ends are searched."""

from tw_autogen.text_truncation import ends_of, without_known_paragraphs


def test_a_known_paragraph_is_named_by_its_first_whole_words():
    paragraph = f"The folder is /home/me/data. Code can read it, but not write to it{'. More' * 40}"

    assert without_known_paragraphs(f"{paragraph}\n\nNew.", paragraph) == (
        "(The folder is /home/me/data. Code can read it, but not… as before)\n\nNew."
    )


def test_words_that_say_how_to_answer_are_looked_for_at_both_ends_of_a_long_text_alone():
    long = f"from now on {'word and more ' * 50_000} whenever"

    assert ends_of("short") == "short"
    assert (ends_of(long)[:11], ends_of(long)[-8:], len(ends_of(long)) < 21_000) == ("from now on", "whenever", True)
