"""What can be asked of any kernel, also of a double that runs no code."""

from __future__ import annotations

from tests.support.kernel_checks.bench import DOUBLE, SECONDS, KernelFactory, expect, expect_error, run
from tw_autogen.kernel import Execution, Kernel


def it_has_all_that_a_kernel_has(factory: KernelFactory) -> None:
    """It fulfils the protocol, its folder is absolute, and it says in one line where code runs, at any time."""
    with factory() as kernel:
        expect(isinstance(kernel, Kernel), True, "isinstance(kernel, Kernel)")
        expect(kernel.folder.is_absolute(), True, f"folder {kernel.folder} is absolute")
        before = kernel.where
        kernel.execute("1", seconds=SECONDS)
        for where in (before, kernel.where):
            expect((bool(where.strip()), where.count("\n")), (True, 0), f"`where` is one line: {where!r}")


def a_cell_ends_in_an_execution(factory: KernelFactory) -> None:
    """A cell that ends well says so, without words of an error."""
    with factory() as kernel:
        execution = run(kernel, "1")
        expect(isinstance(execution, Execution), True, f"{execution!r} is an Execution")
        expect((execution.error, execution.state_lost), ("", False), "error, state_lost")


def it_can_be_closed_twice(factory: KernelFactory) -> None:
    """Closing a second time, or before any cell, does nothing."""
    unused = factory()
    unused.close()
    unused.close()
    with factory() as kernel:
        kernel.execute("1", seconds=SECONDS)
        kernel.close()


def with_lets_exceptions_through(factory: KernelFactory) -> None:
    """`with` gives the kernel itself, and an exception leaves it."""
    made = factory()

    def leave() -> None:
        with made as kernel:
            expect(kernel is made, True, "`with` gives the kernel")
            raise LookupError("on its way")

    expect_error(LookupError, leave, "an exception within `with`")


def what_is_put_can_be_fetched_and_stays(factory: KernelFactory) -> None:
    """JSON values come back as they went, and are put again into a fresh process."""
    value = {"a": [1, 2.5, None, True], "b": {"c": "ü\n'"}}
    with factory() as kernel:
        kernel.put("value", value)
        expect(kernel.get("value"), value, "get")
        expect(
            "value" in [variable.name for variable in kernel.variables()], True, "what was put is among the variables"
        )
        kernel.restart()
        expect(kernel.get("value"), value, "get after a restart")


def an_unknown_variable_is_a_key_error(factory: KernelFactory) -> None:
    """`get` says which name there is no variable of."""
    with factory() as kernel:
        error = expect_error(KeyError, lambda: kernel.get("never_made"), "get('never_made')")
        expect("never_made" in str(error), True, f"the message {error} names it")


def an_interrupt_without_a_cell_does_nothing(factory: KernelFactory) -> None:
    """Nor does it stop the next one."""
    with factory() as kernel:
        kernel.interrupt()
        run(kernel, "1")
        kernel.interrupt()
        run(kernel, "1")


def plugins_and_functions_may_come_before_the_first_cell(factory: KernelFactory) -> None:
    """`load`, `serve` and `put` work on a kernel that has not run anything, and again with the same name."""
    with factory() as kernel:
        for _ in range(2):
            kernel.load(DOUBLE)
            kernel.serve("ask", lambda: "answered", seconds=SECONDS)
            kernel.put("given", 7)
        run(kernel, "1")


CHECKS = (
    it_has_all_that_a_kernel_has,
    a_cell_ends_in_an_execution,
    it_can_be_closed_twice,
    with_lets_exceptions_through,
    what_is_put_can_be_fetched_and_stays,
    an_unknown_variable_is_a_key_error,
    an_interrupt_without_a_cell_does_nothing,
    plugins_and_functions_may_come_before_the_first_cell,
)
