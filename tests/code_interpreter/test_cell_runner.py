"""Host-run plugins in cells: their limits for one request, their files and logs, and what comes too late."""

import contextvars
import threading

import pytest

from tw_autogen.code_interpreter import CellRunner, CodeInterpreter, CodeInterpreterSettings
from tw_autogen.conversation import Round
from tw_autogen.errors import HostCallBudgetError, KernelStartError, ModelError, PluginLoadError
from tw_autogen.events import HostCalled
from tw_autogen.kernel import LocalKernel, Log
from tw_autogen.plugin import PluginSpec, callable_plugin
from tw_autogen.plugin.mcp.call_gate import Gate
from tw_autogen.plugin.mcp.config import McpServer
from tw_autogen.plugin.spec import read_spec
from tw_autogen.role import Turn
from tw_autogen.testing import FakeKernel, ScriptedModel

SECONDS = 30


class Caller(threading.Thread):
    """Calls on a thread of its own, in the context of the cell, as a kernel does; keeps what came."""

    def __init__(self, function, *args):
        self.came = None
        self._call = (contextvars.copy_context(), function, args)
        super().__init__(daemon=True)
        self.start()

    def run(self):
        context, function, args = self._call
        try:
            self.came = context.run(function, *args)
        except (RuntimeError, ModelError) as error:
            self.came = error


class Host:
    """Cells over a kernel whose code is a function of this test."""

    def __init__(self, folder, plugins, *, model=None, **settings):
        self.events = []
        self.folder = folder
        self.code = lambda call: None
        self.kernel = FakeKernel(lambda code: str(self.code(self.kernel.served)), folder=folder)
        self.cells = CellRunner(self.kernel, plugins, model or ScriptedModel([]), CodeInterpreterSettings(**settings))

    def run(self, code, *, round="r1"):  # noqa: A002 - the word of the field
        self.code = code
        turn = Turn(Round("?", id=round), self.folder, emit=self.events.append)
        return self.cells.run("…", turn=turn, seconds=SECONDS)

    @property
    def called(self):
        return [(event.function, event.error) for event in self.events if isinstance(event, HostCalled)]


def plugin(function, name, **limits):
    return callable_plugin(function, name=name, description="d", parameters=(), returns=(), **limits)


def count(call, times):
    for _ in range(times):
        call()


def test_a_plugins_own_limit_holds_for_one_request_and_begins_anew_with_the_next(tmp_path):
    host = Host(tmp_path, [plugin(lambda: 1, "one", calls=2), plugin(lambda: 2, "two")])

    host.run(lambda call: count(call["one"], 2))
    with pytest.raises(HostCallBudgetError, match="one may be called 2 times for one request") as caught:
        host.run(lambda call: call["one"]())
    host.run(lambda call: call["two"]())
    host.run(lambda call: call["one"](), round="r2")

    assert caught.value.name == "one"
    assert [error.partition(":")[0] for _, error in host.called] == ["", "", "HostCallBudgetError", "", ""]


def test_a_call_outside_of_any_request_gives_a_request_no_further_calls(tmp_path):
    host = Host(tmp_path, [plugin(lambda: 1, "one", calls=1)])

    host.run(lambda call: call["one"]())
    host.kernel.served["one"]()
    for call in (lambda: host.run(lambda served: served["one"]()), host.kernel.served["one"]):
        with pytest.raises(HostCallBudgetError, match="one may be called 1 times"):
            call()
    host.run(lambda call: call["one"](), round="r2")
    host.kernel.served["one"]()


def test_of_an_endless_error_of_a_plugin_the_journal_gets_the_beginning(tmp_path):
    def fail():
        raise ValueError("x" * 1_000_000)

    host = Host(tmp_path, [plugin(fail, "one")])
    with pytest.raises(ValueError, match="xxx"):
        host.run(lambda call: call["one"]())

    assert [len(error) for _, error in host.called] == [2001]


def test_all_plugins_together_may_be_called_so_often_for_one_request(tmp_path):
    host = Host(tmp_path, [plugin(lambda: 1, "one"), plugin(lambda: 2, "two")], host_calls=3)

    host.run(lambda call: (count(call["one"], 2), call["two"]()))
    with pytest.raises(HostCallBudgetError, match=r"^two: the 3 calls .*`code_interpreter.host_calls`\) are used up"):
        host.run(lambda call: call["two"]())


def test_calls_side_by_side_count_too(tmp_path):
    host = Host(tmp_path, [plugin(lambda: 1, "one")], host_calls=3)

    with pytest.raises(HostCallBudgetError, match="3 calls to the host"):
        host.run(lambda call: [ticket.result() for ticket in [call["one"].submit() for _ in range(4)]])


def test_all_calls_together_may_take_so_long_for_one_request(tmp_path):
    host = Host(tmp_path, [plugin(lambda: threading.Event().wait(0.03), "wait")], host_seconds=0.02)

    host.run(lambda call: call["wait"]())
    with pytest.raises(
        HostCallBudgetError, match=r"^wait: the 0.02 seconds .*`code_interpreter.host_seconds`\) are used"
    ):
        host.run(lambda call: call["wait"]())
    host.run(lambda call: call["wait"](), round="r2")


def test_the_time_that_a_person_takes_is_not_the_calls(tmp_path):
    def approve(proposal):
        threading.Event().wait(0.6)
        return True

    server = McpServer("crm", command="crm-server")
    gate = Gate(server, {"name": "pay"}, approval="writes", approve=approve, asking=threading.Lock())
    host = Host(tmp_path, [plugin(lambda: gate.allow("pay", {}), "pay")], host_seconds=0.5)

    host.run(lambda call: count(call["pay"], 2))

    assert [error for _, error in host.called] == ["", ""]
    assert [event.seconds < 0.5 for event in host.events if isinstance(event, HostCalled)] == [True, True]


def test_files_and_logs_of_calls_side_by_side_belong_each_to_its_call_and_none_is_lost(tmp_path):
    together = threading.Barrier(4, timeout=SECONDS)

    def connect(context):
        def save(number):
            together.wait()
            for part in range(25):
                context.add_artifact(f"{number}.{part}", "part.txt", "txt", f"{number}.{part}")
            context.log("info", "save", f"{number} in {context.execution_id}")
            together.wait()

        return save

    host = Host(tmp_path, [PluginSpec("save", "d", connect=connect)])

    def side_by_side(call):
        threads = [Caller(call["save"], number) for number in range(4)]
        for thread in threads:
            thread.join(SECONDS)

    ran = host.run(side_by_side)

    assert sorted(artifact.name for artifact in ran.artifacts) == sorted(
        f"{n}.{part}" for n in range(4) for part in range(25)
    )
    assert all(artifact.path.read_text(encoding="utf-8") == artifact.name for artifact in ran.artifacts)
    assert sorted(log.message[0] for log in ran.logs) == list("0123")
    assert len({log.message.split()[-1] for log in ran.logs}) == 4


def test_a_plugin_of_many_that_does_not_load_at_first_is_loaded_by_a_later_cell_that_names_it(tmp_path):
    up = threading.Event()

    class Kernel(FakeKernel):
        def load(self, plugin):
            if not up.is_set():
                raise PluginLoadError("the database is down", path=spec.path)
            super().load(plugin)

    spec = PluginSpec("forecast", "d", path=tmp_path / "forecast.yaml", text="def forecast(): ...")
    with Kernel(["1"], folder=tmp_path) as kernel:
        cells = CellRunner(kernel, [spec], ScriptedModel([]), CodeInterpreterSettings(), later=True)
        turn = Turn(Round("?"), tmp_path)
        for _ in range(2):
            with pytest.raises(PluginLoadError, match="the database is down"):
                cells.run("forecast()", turn=turn, seconds=SECONDS)
        up.set()

        assert cells.run("forecast()", turn=turn, seconds=SECONDS).ok
        assert list(kernel.loaded) == ["forecast"]


def test_a_call_that_hangs_keeps_back_nothing_of_the_others_and_what_it_brings_late_is_dropped(tmp_path):
    began, gate = threading.Event(), threading.Event()

    def connect(context):
        def save(name):
            if name == "late":
                began.set()
                gate.wait(SECONDS)
            context.add_artifact(name, "file.txt", "txt", name)
            context.log("info", "save", name)

        return save

    host = Host(tmp_path, [PluginSpec("save", "d", connect=connect)], host_calls=2)
    left = []

    def hang(call):
        left.append(Caller(call["save"], "late"))
        began.wait(SECONDS)
        call["save"]("first")

    first = host.run(hang)
    told = host.called

    def finish(call):
        gate.set()
        left[0].join(SECONDS)
        call["save"]("second")

    second = host.run(finish, round="r2")

    assert (first.logs, second.logs) == ((Log("info", "save", "first"),), (Log("info", "save", "second"),))
    assert [artifact.name for artifact in first.artifacts] == ["first"]
    assert "second" in [artifact.name for artifact in second.artifacts]
    assert "late" not in [artifact.name for artifact in second.artifacts]
    assert [name for name, _ in told] == ["save", "save"]
    assert "given up after" in told[-1][1]
    assert host.called[2:] == [("save", "")]


def test_the_model_is_asked_by_one_call_at_a_time_and_by_none_whose_cell_is_over(tmp_path):
    asking, most, guard = 0, 0, threading.Lock()
    began, gate = threading.Event(), threading.Event()

    class Model:
        def complete(self, messages, **how):
            nonlocal asking, most
            with guard:
                asking += 1
                most = max(most, asking)
            threading.Event().wait(0.02)
            with guard:
                asking -= 1
            return ScriptedModel(["fine"]).complete(messages, **how)

    def connect(context):
        def ask(late=False):
            if late:
                began.set()
                gate.wait(SECONDS)
            return context.call_llm_api([{"role": "user", "content": "?"}])

        return ask

    host = Host(tmp_path, [PluginSpec("ask", "d", connect=connect)], model=Model())
    left = []

    def side_by_side(call):
        left.append(Caller(call["ask"], True))
        callers = [Caller(call["ask"]) for _ in range(3)]
        began.wait(SECONDS)
        for caller in callers:
            caller.join(SECONDS)
        return [caller.came for caller in callers]

    ran = host.run(side_by_side)
    gate.set()
    left[0].join(SECONDS)

    assert (ran.result, most) == ("['fine', 'fine', 'fine']", 1)
    assert str(left[0].came) == "ask asked the model although its cell is not running"


def test_a_plugins_own_threads_may_ask_the_model_too(tmp_path):
    def connect(context):
        def ask():
            asking = Caller(lambda: contextvars.Context().run(context.call_llm_api, [{"role": "user", "content": "?"}]))
            asking.join(SECONDS)
            return asking.came

        return ask

    host = Host(tmp_path, [PluginSpec("ask", "d", connect=connect)], model=ScriptedModel(["fine"]))

    assert host.run(lambda call: call["ask"]()).result == "fine"


def test_what_a_plugin_asks_the_model_takes_no_longer_than_its_call_may(tmp_path):
    asked = []

    class Model:
        def complete(self, messages, **how):
            asked.append(how["seconds"])
            return ScriptedModel(["fine"]).complete(messages, **how)

    def connect(context):
        return lambda: context.call_llm_api([{"role": "user", "content": "?"}])

    specs = [PluginSpec("ask", "d", connect=connect, seconds=7.0), PluginSpec("other", "d", connect=connect)]
    host = Host(tmp_path, specs, model=Model(), host_seconds=90.0)
    host.run(lambda call: (call["ask"](), call["other"]()))

    assert asked == [7.0, 90.0]


def test_a_call_does_not_wait_for_ever_behind_one_whose_model_never_answers(tmp_path):
    asked, gate = threading.Event(), threading.Event()

    class Model:
        def complete(self, messages, **how):
            asked.set()
            gate.wait(SECONDS)
            return ScriptedModel(["late"]).complete(messages)

    def connect(context):
        return lambda: context.call_llm_api([{"role": "user", "content": "?"}])

    host = Host(tmp_path, [PluginSpec("ask", "d", connect=connect, seconds=0.05)], model=Model())
    stuck = []

    def ask_twice(call):
        stuck.append(Caller(call["ask"]))
        asked.wait(SECONDS)
        call["ask"]()

    with pytest.raises(TimeoutError, match="ask: another call has kept the model busy for too long"):
        host.run(ask_twice)

    stuck[0].join(SECONDS)  # with its cell the first call ends, though its model goes on
    assert "cancelled" in str(stuck[0].came)
    gate.set()


def test_a_call_that_begins_after_its_cell_runs_nothing_and_is_counted_to_no_request(tmp_path):
    began, late = [], []
    host = Host(tmp_path, [plugin(lambda: began.append(1), "one", calls=1)])

    host.run(lambda call: late.append((contextvars.copy_context(), call["one"])))
    host.run(lambda call: call["one"](), round="r2")
    with pytest.raises(InterruptedError, match="the cell that made this call is over"):
        late[0][0].run(late[0][1])
    with pytest.raises(HostCallBudgetError, match="1 times"):
        host.run(lambda call: call["one"](), round="r2")

    assert began == [1]


CLOSES = """\
from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class Closes(Plugin):
    def __call__(self):
        return 1

    def close(self):
        (self.ctx.folder / f"{self.name}.closed").touch()
        raise RuntimeError(f"the database of {self.name} is gone")
"""


def test_a_plugin_whose_close_fails_keeps_neither_the_next_one_nor_the_kernel_open(tmp_path):
    closed = []

    class Kernel(FakeKernel):
        def close(self):
            closed.append("kernel")

    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(CLOSES, encoding="utf-8")
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\ndescription: d\nruns_in: host\n", encoding="utf-8")
    plugins = [read_spec(tmp_path / f"{name}.yaml") for name in ("one", "two")]
    role = CodeInterpreter(ScriptedModel([]), lambda folder: Kernel([], folder=folder), plugins=plugins)
    role.kernel_in(tmp_path)

    with pytest.raises(RuntimeError, match="is gone"):
        role.close()

    assert sorted(path.name for path in tmp_path.glob("*.closed")) == ["one.closed", "two.closed"]
    assert closed == ["kernel"]


def test_a_plugin_that_does_not_load_leaves_neither_the_kernel_nor_earlier_plugins_open(tmp_path):
    kernels = []

    def make(folder):
        kernels.append(LocalKernel(folder))
        return kernels[-1]

    for name, code in (("one", CLOSES), ("two", "import nothing_of_that_name\n")):
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        runs_in = "host" if name == "one" else "kernel"
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\ndescription: d\nruns_in: {runs_in}\n", encoding="utf-8")
    plugins = [read_spec(tmp_path / f"{name}.yaml") for name in ("one", "two")]
    role = CodeInterpreter(ScriptedModel([]), make, plugins=plugins)
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(PluginLoadError, match="nothing_of_that_name"):
            role.kernel_in(folder)

    assert len(kernels) == 2
    for kernel in kernels:
        assert (kernel.folder / "one.closed").exists()
        with pytest.raises(KernelStartError, match="the kernel is closed"):
            kernel.execute("1", seconds=5)
