"""Who works for whom: cycles and depth, also through a kernel's threads."""

from contextlib import ExitStack

import pytest

from tw_autogen.errors import CallCycleError, HostCallError
from tw_autogen.hosts.call_chain import calling, chain
from tw_autogen.kernel import LocalKernel
from tw_autogen.plugin import HostPlugin, callable_plugin

ANALYST, LEGAL = object(), object()


def test_an_agent_is_not_called_from_its_own_work():
    with (
        calling("analyst", ANALYST),
        calling("legal", LEGAL),
        pytest.raises(
            CallCycleError, match="^analyst → legal → analyst: an agent can't be called from its own work$"
        ) as at,
        calling("analyst", ANALYST),
    ):
        pass

    assert isinstance(at.value, HostCallError)
    assert (at.value.name, chain()) == ("analyst", ())


def test_another_agent_of_the_same_name_is_another_agent():
    with calling("analyst", ANALYST), calling("analyst", LEGAL):
        assert [link.agent for link in chain()] == [ANALYST, LEGAL]


def test_calls_go_only_so_deep():
    with ExitStack() as work:
        for name in "abcde":
            work.enter_context(calling(name, object()))
        with (
            pytest.raises(CallCycleError, match="^a → b → c → d → e → f: 5 agents deep is as far as calls go$"),
            calling("f", object()),
        ):
            pass


def test_a_host_run_plugin_sees_the_chain_of_whoever_runs_the_cell(tmp_path):
    def at_work() -> list[str]:
        """Say who is at work."""
        return [link.name for link in chain()]

    def ask_analyst() -> None:
        """Ask the analyst."""
        with calling("analyst", ANALYST):
            pass

    with LocalKernel(tmp_path) as kernel:
        for one in (at_work, ask_analyst):
            kernel.serve(one.__name__, HostPlugin(callable_plugin(one), folder=tmp_path))
        with calling("analyst", ANALYST):
            seen = kernel.execute("at_work(), at_work.submit().result()", seconds=30)
            refused = kernel.execute("ask_analyst()", seconds=30)
        after = kernel.execute("at_work()", seconds=30)

    assert seen.result == "(['analyst'], ['analyst'])"
    assert "ask_analyst: CallCycleError: analyst → analyst: an agent can't be called from its own work" in refused.error
    assert after.result == "[]"
