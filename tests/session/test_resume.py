"""A session that goes on where an earlier one ended: its rounds by `remember`, its variables by the kernel."""

from tw_autogen.kernel import LocalKernel
from tw_autogen.session import open_session
from tw_autogen.testing import ScriptedModel, codes, plans


def test_a_later_session_has_the_rounds_and_the_variables_of_an_earlier_one(tmp_path):
    folder = tmp_path / "code"

    def ask(plan, code, past=()):
        with ScriptedModel([plans(plan), plans("Done.", to="User")]) as planner, ScriptedModel([codes(code)]) as coder:
            models = {"Planner": planner, "CodeInterpreter": coder}
            kernel = lambda _: LocalKernel(folder, resume=True)  # noqa: E731 - as a user writes it
            with open_session(models, kernel=kernel, folder=tmp_path, plugins=["anomaly_detection"]) as session:
                for one in past:
                    session.remember(one)
                session.ask("go on")
                return session.rounds, coder.calls[-1]

    rounds, _ = ask("count to 41", "total = 41")
    rounds, call = ask("add one", "total + 1", past=rounds)

    assert "total: int, 41" in str(call)
    assert len(rounds) == 2
    assert "42" in rounds[-1].posts[-2].message
