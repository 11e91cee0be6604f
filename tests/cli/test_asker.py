from io import StringIO

import pytest
from rich.console import Console

from tw_autogen.approval import Decision, Proposal
from tw_autogen.cli.asker import Asker
from tw_autogen.cli.show import Show


@pytest.mark.parametrize(
    ("wanted", "question"),
    [
        (
            Proposal("packages", "humanize>=4\nx"),
            "Code wants to install humanize>=4, x for this session. Allow it? [y/N]",
        ),
        (Proposal("command", "ls\x1b[31m -l"), "A role wants to run this command. Allow it?"),
    ],
)
def test_what_is_wanted_is_asked_for_in_its_own_words_and_a_stopped_round_means_no(wanted, question):
    console = Console(file=StringIO(), width=200)
    asker = Asker(console, Show(console))
    asker.stop()

    assert asker.approve(wanted) == Decision(False)
    assert question in console.file.getvalue()
    assert "\x1b" not in console.file.getvalue()
