"""Paragraphs that a reader has seen are named instead of repeated."""

from tw_autogen.text_truncation import without_known_paragraphs


def test_a_known_paragraph_is_named_by_its_first_whole_words():
    paragraph = f"The folder is /home/me/data. Code can read it, but not write to it{'. More' * 40}"

    assert without_known_paragraphs(f"{paragraph}\n\nNew.", paragraph) == (
        "(The folder is /home/me/data. Code can read it, but not… as before)\n\nNew."
    )
