"""The scripted model and the fake kernel: they follow their script, and fail whoever doesn't."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tw_autogen.errors import ModelError
from tw_autogen.kernel import Execution, Kernel, Loadable, Variable
from tw_autogen.model import ChatModel, Completion, read_code, read_object
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

ASKED = [{"role": "user", "content": "what is 6*7?"}]


def test_steps_are_text_completions_errors_and_functions():
    steps = [
        "text",
        Completion("whole", model="m"),
        ModelError("gone"),
        lambda messages: f"you said {messages[-1]['content']}",
    ]
    with ScriptedModel(steps) as model:
        assert isinstance(model, ChatModel)
        assert model.complete(ASKED).text == "text"
        assert model.complete(ASKED).model == "m"
        with pytest.raises(ModelError, match="gone"):
            model.complete(ASKED)
        assert model.complete(ASKED).text == "you said what is 6*7?"
        assert model.left == 0


def test_being_asked_too_often_fails_at_once_and_names_the_last_message():
    with ScriptedModel(["one"]) as model:
        model.complete(ASKED)
        with pytest.raises(AssertionError, match=r"was to be asked once, and is asked once more; .* user: 'what is 6"):
            model.complete(ASKED)

    assert len(model.calls) == 1


def test_steps_left_over_fail_the_with_block_and_say_what_came_next():
    with (
        pytest.raises(AssertionError, match="asked 1 of 2 times; the next step would have been 'two'"),
        ScriptedModel(["one", "two"]) as model,
    ):
        model.complete(ASKED)


def test_another_error_is_not_hidden_by_steps_left_over():
    with pytest.raises(KeyError, match="the real trouble"), ScriptedModel(["one"]):
        raise KeyError("the real trouble")


def test_calls_are_snapshots_of_what_was_asked_then():
    messages = [{"role": "user", "content": [{"type": "text", "text": "first"}]}]
    tools = [{"type": "function", "function": {"name": "f"}}]
    with ScriptedModel(["a", lambda asked: asked.clear() or "b"]) as model:
        model.complete(messages, schema={"type": "object"}, tools=tools)
        messages[0]["content"][0]["text"] = "changed"
        messages.append({"role": "assistant", "content": "a"})
        model.complete(messages)

    assert model.calls[0] == [{"role": "user", "content": [{"type": "text", "text": "first"}]}]
    assert len(model.calls[1]) == 2
    assert model.schemas == [{"type": "object"}, None]
    assert model.tools == [tools, None]


def test_its_text_streams_in_pieces_and_a_cancelled_call_takes_no_step():
    pieces, cancelled = [], threading.Event()
    with ScriptedModel(["It is 42, as everybody knows."]) as model:
        cancelled.set()
        with pytest.raises(ModelError, match="cancelled"):
            model.complete(ASKED, cancelled=cancelled)
        model.complete(ASKED, on_text=pieces.append)

    assert len(pieces) > 1
    assert "".join(pieces) == "It is 42, as everybody knows."


def test_each_of_many_threads_gets_a_step_of_its_own():
    with ScriptedModel([str(number) for number in range(50)]) as model, ThreadPoolExecutor(8) as threads:
        replies = {reply.text for reply in threads.map(lambda _: model.complete(ASKED), range(50))}
    assert len(replies) == 50


def test_plans_writes_what_a_planner_reads():
    to_worker = read_object(plans("compute\n6*7", then="User"))
    assert list(to_worker) == [
        "reasoning",
        "init_plan",
        "plan",
        "current_plan_step",
        "stop",
        "send_to",
        "message",
        "then",
    ]  # fmt: skip
    assert to_worker["send_to"] == "CodeInterpreter"
    assert to_worker["stop"] == "InProcess"
    assert to_worker["init_plan"] == to_worker["plan"] == to_worker["current_plan_step"] == "1. compute 6*7"
    assert read_object(plans("It is 42.", to="User")) == {
        "reasoning": "This is the next step.",
        "stop": "Completed",
        "send_to": "User",
        "message": "It is 42.",
    }


def test_plans_takes_every_field():
    said = json.loads(
        plans("which?", to="User", plan="1. a\n2. b", init_plan="1. a\n2. b <sequentially depends on 1>", step="2. b",
              stop="Clarification", reasoning="unclear")
    )  # fmt: skip
    assert (said["plan"], said["current_plan_step"], said["stop"], said["reasoning"]) == (
        "1. a\n2. b",
        "2. b",
        "Clarification",
        "unclear",
    )
    assert said["init_plan"].endswith("<sequentially depends on 1>")


@pytest.mark.parametrize("code", ["6 * 7", "print('```')\nx = '''\n```\n'''", "x = 1\n"])
def test_codes_writes_what_a_code_interpreter_reads(code):
    reply = read_code(codes(code, thought="I compute."))
    assert (reply.thought, reply.code) == ("I compute.", code.rstrip())


def test_a_fake_kernel_is_a_kernel_that_follows_its_script(tmp_path):
    written = []
    shown = Execution(ok=False, stdout="a\n", stderr="b\n", error="E", variables=(Variable("df", "DataFrame"),))
    with FakeKernel(["42", shown, RuntimeError("the kernel is gone")], folder=tmp_path) as kernel:
        assert isinstance(kernel, Kernel)
        assert kernel.folder == tmp_path.resolve()
        assert kernel.execute("6 * 7", seconds=1) == Execution(ok=True, result="42")
        assert kernel.execute("df", seconds=1, on_output=lambda *piece: written.append(piece)) is shown
        with pytest.raises(RuntimeError, match="the kernel is gone"):
            kernel.execute("x", seconds=1)

    assert kernel.cells == ["6 * 7", "df", "x"]
    assert written == [("stdout", "a\n"), ("stderr", "b\n")]
    assert [str(variable) for variable in kernel.variables()] == ["df: DataFrame"]
    assert kernel.closed


def test_a_fake_kernels_served_functions_can_be_submitted():
    kernel = FakeKernel()
    kernel.serve("half", lambda x: 1 / x)
    good, bad = kernel.served["half"].submit(2), kernel.served["half"].submit(0)

    assert (good.done(), good.result(), bad.done()) == (True, 0.5, True)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        bad.result()


def test_a_fake_kernel_keeps_what_it_is_given():
    kernel = FakeKernel(lambda code: str(kernel.served["add"](1, 2)))
    kernel.load(Loadable("sales", "source"))
    kernel.serve("add", lambda a, b: a + b)
    kernel.put("rate", 0.5)

    assert kernel.execute("add(1, 2)", seconds=1).result == "3"
    assert kernel.get("rate") == 0.5
    assert kernel.loaded["sales"].source == "source"
    assert [str(variable) for variable in kernel.variables()] == ["rate: float"]
    with pytest.raises(KeyError, match="no variable 'price'; there are: rate"):
        kernel.get("price")
    kernel.interrupt()
    kernel.restart()
    assert (kernel.interrupts, kernel.restarts) == (1, 1)


def test_a_fake_kernel_counts_its_cells_as_the_model_counts_its_calls():
    with FakeKernel(["1"]) as kernel:
        kernel.execute("a", seconds=1)
        with pytest.raises(AssertionError, match="was to run 1 cells, and gets one more: 'b'"):
            kernel.execute("b", seconds=1)
    with pytest.raises(AssertionError, match="ran 0 of 1 cells"), FakeKernel(["1"]):
        pass
