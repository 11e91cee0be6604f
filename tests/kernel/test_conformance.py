"""Every kernel of ours does what every kernel must, and keeps the isolation that it claims; broken ones are found."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.kernel.test_container import make_engine
from tests.support.kernel_checks import KERNEL_CHECKS, KERNEL_CLAIMS, check_kernel
from tw_autogen.errors import SandboxError
from tw_autogen.kernel import ContainerKernel, Execution, GatewayKernel, KernelSettings, LocalKernel
from tw_autogen.testing import FakeKernel

QUICK = {"grace_seconds": 1.0}
LEVELS = ("namespaces", "landlock", "bubblewrap")
CLAIMED = {
    "forked": set(KERNEL_CLAIMS),
    "cold": set(KERNEL_CLAIMS),
    **{level: set(KERNEL_CLAIMS) for level in LEVELS},
    "off": {"nothing_outlives"},
    "container": set(),  # the engine is a stand-in, without isolation
    "gateway": set(),
}


@contextlib.contextmanager
def local(folders, **settings):
    """Give what makes kernels here, each in a folder of its own; skip where their sandbox can't be set up."""
    chosen = KernelSettings(**QUICK, **settings)
    try:
        with LocalKernel(next(folders), settings=chosen) as kernel:
            kernel.execute("1", seconds=60)
    except SandboxError as error:
        pytest.skip(f"not on this system: {error}")
    yield lambda: LocalKernel(next(folders), settings=chosen)


@contextlib.contextmanager
def container(folders):
    with tempfile.TemporaryDirectory() as place:
        engine = make_engine(Path(place))
        yield lambda: ContainerKernel(
            next(folders), image="tw-kernel", engine=str(engine), settings=KernelSettings(**QUICK)
        )


@contextlib.contextmanager
def behind_a_gateway(folders):
    pytest.importorskip("kernel_gateway", reason="needs the real peer: pip install jupyter_kernel_gateway")
    pytest.importorskip("websocket", reason="needs the extra `gateway`")
    from tests.kernel.test_gateway import TOKEN, gateway

    with gateway(next(folders)) as (_, url):
        yield lambda: GatewayKernel(next(folders), gateway_url=url, token=TOKEN, settings=KernelSettings(**QUICK))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    tmp_path_factory.getbasetemp()  # made now, and not where a test lays its temporary files
    return iter(lambda: tmp_path_factory.mktemp("session"), None)


def made(kind, folders):
    """Give a kernel's factory as a context."""
    if kind == "off" and os.geteuid() == 0:
        pytest.skip("without a sandbox nothing is tried as root")
    if kind == "namespaces":
        with LocalKernel(next(folders), settings=KernelSettings(**QUICK)) as kernel:
            if "sandbox: namespaces" in kernel.where:
                pytest.skip("this is what `forked` is here")
    if kind in ("container", "gateway"):
        if os.name != "posix":
            pytest.skip("needs Unix sockets")
        return {"container": container, "gateway": behind_a_gateway}[kind](folders)
    if kind in (*LEVELS, "off"):
        return local(folders, sandbox=kind)
    return local(folders, fork=kind == "forked")


FIRST = ("forked",)
"""What is tried whenever tests are; the others have the same host's side, and take minutes together."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=() if one in FIRST else pytest.mark.slow) for one in CLAIMED],
)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def factory(kind, folders):
    with made(kind, folders) as factory:
        yield factory


@pytest.mark.parametrize("name", KERNEL_CHECKS)
def test_it_holds_that(factory, name):
    KERNEL_CHECKS[name](factory)


@pytest.mark.parametrize("claim", KERNEL_CLAIMS)
def test_a_sandbox_that_is_claimed_stands(kind, factory, claim):
    if claim not in CLAIMED[kind]:
        pytest.skip("not claimed")
    KERNEL_CLAIMS[claim](factory)


def test_a_double_holds_the_contract():
    passed = check_kernel(lambda: FakeKernel(lambda code: Execution(ok=True)), parts=["contract"])

    assert passed == [check.name for check in KERNEL_CHECKS.values() if check.part == "contract"]


class Forgetful(LocalKernel):
    """A kernel that is replaced in silence, as many are."""

    def execute(self, code, **how):
        ran = super().execute(code, **how)
        return super().execute(code, **how) if ran.state_lost else ran


class Mute(LocalKernel):
    """Output comes at the end only."""

    def execute(self, code, *, on_output=None, **how):
        ran = super().execute(code, **how)
        if on_output:
            on_output("stdout", ran.stdout)
        return ran


class Bare(LocalKernel):
    """A restart leaves out what was put in."""

    def restart(self):
        self._plugins.clear()
        super().restart()


class Loose(LocalKernel):
    """Artifacts are told again by each cell."""

    def execute(self, code, **how):
        ran = super().execute(code, **how)
        self.all = (*getattr(self, "all", ()), *ran.artifacts)
        return Execution(**{**vars(ran), "artifacts": self.all})


class Open(LocalKernel):
    """`with` swallows exceptions."""

    def __exit__(self, *how):
        super().__exit__(*how)
        return True


BROKEN = {
    Forgetful: ("a_death_between_two_cells_is_told", "no loss was told: expected 'True', found 'False'"),
    Mute: ("output_arrives_while_the_cell_runs", "before the cell's end: expected 'True', found 'False'"),
    Bare: ("a_restart_is_fresh", "NameError: name 'double' is not defined"),
    Loose: ("files_for_the_user_are_told", "artifacts of the next cell: expected \\(\\), found "),
    Open: ("with_lets_exceptions_through", "expected a LookupError, found None"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_kernel_is_found_out(folders, broken):
    name, words = BROKEN[broken]
    with pytest.raises(AssertionError, match=words):
        KERNEL_CHECKS[name](lambda: broken(next(folders)))


LOWERED = {  # with Landlock, where a folder may be opened that holds the kernel's own
    "no_network": lambda own: {"allow_network": True},
    "no_host_files": lambda own: {"sandbox": "off"},
    "no_host_writes": lambda own: {"sandbox": "off"},
    "no_secrets": lambda own: {"environment": ("TW_CHECK_*",)},
}


@pytest.mark.skipif(sys.platform != "linux", reason="there the isolation of ours stand")
@pytest.mark.parametrize("claim", LOWERED)
def test_a_sandbox_that_does_not_stand_is_found_out(folders, monkeypatch, claim):
    with tempfile.TemporaryDirectory() as own:
        os.chmod(own, 0o777)
        monkeypatch.setattr(tempfile, "tempdir", own)  # where a check lays what must not be reached
        alone = {"sandbox": "landlock", "fork": False, "warm": 0}  # no kernel is made there for later
        settings = KernelSettings(**{**alone, **LOWERED[claim](own)})
        with local(folders, **alone), pytest.raises(AssertionError, match=r"expected (.|\n)*found"):
            KERNEL_CLAIMS[claim](lambda: LocalKernel(next(folders), settings=settings))


def test_the_report_says_of_each_check_what_came_of_it():
    class Nameless(FakeKernel):
        def get(self, name):
            return self.values.get(name)

    with pytest.raises(AssertionError, match="1 of 8 checks failed\n") as caught:
        check_kernel(lambda: Nameless(lambda code: Execution(ok=True)), parts=["contract"])

    assert "\ncontract\n  ok      it_has_all_that_a_kernel_has\n" in str(caught.value)
    assert (
        "  FAILED  an_unknown_variable_is_a_key_error: `get` says which name there is no variable of.\n"
        "          get('never_made'): expected a KeyError, found None\n" in str(caught.value)
    )


def test_what_a_kernel_raises_is_a_failure_and_the_rest_is_tried(folders):
    class Broken(FakeKernel):
        def restart(self):
            raise RuntimeError("no restart here")

    with pytest.raises(AssertionError, match="RuntimeError: no restart here(.|\n)*ok      an_unknown_variable"):
        check_kernel(lambda: Broken(lambda code: Execution(ok=True)), parts=["contract"])


def test_only_known_claims_and_parts_can_be_named():
    with pytest.raises(ValueError, match=r"no claim 'no_sound'; there are: no_network, "):
        check_kernel(FakeKernel, claims=["no_sound"])
    with pytest.raises(ValueError, match=r"no part 'speed'; there are: contract, "):
        check_kernel(FakeKernel, parts=["speed"])
