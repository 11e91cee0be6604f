"""As root at the level `landlock`, what is closed to code stays so, wherever code could move it."""

import os
import sys

import pytest

from tw_autogen.errors import ConfigError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.folder_ownership import hand_over

SECONDS = 60


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root has files of several users")
@pytest.mark.parametrize("owner", [0, 4242])
@pytest.mark.parametrize("name", ["secret.txt", "sub/secret.txt", "closed", ".env"])
def test_root_grants_no_folder_to_write_in_which_something_is_closed_to_code(tmp_path, name, owner):
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    granted = tmp_path / "w"
    (granted / name).parent.mkdir(parents=True)
    if name == "closed":
        (granted / name).mkdir(mode=0o700)
    else:
        (granted / name).write_text("secret")
        (granted / name).chmod(0o600)
    os.chown(granted / name, owner, owner)
    (granted / name).parent.chmod(0o777)
    granted.chmod(0o777)
    settings = KernelSettings(sandbox="namespaces", write=(str(granted),), warm=0)

    with LocalKernel(tmp_path / "k", settings=settings) as kernel:
        if name == ".env":  # stays where it is
            assert kernel.execute("1", seconds=SECONDS).ok
            return
        with pytest.raises(ConfigError, match=rf"kernel\.write: .*{name} is closed to others.*open or move it"):
            kernel.execute("1", seconds=SECONDS)
        (granted / name).chmod(0o755)
        made = f"import os\nos.close(os.open({str(granted / 'made')!r}, os.O_CREAT, 0o600))"
        assert kernel.execute(made, seconds=SECONDS).ok
    with LocalKernel(tmp_path / "k", settings=settings) as kernel:  # what code has made is no reason
        assert kernel.execute("1", seconds=SECONDS).ok


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root has files of several users")
@pytest.mark.parametrize("name", [".checkpoint", ".tw-exchange"])
def test_the_host_changes_the_mode_of_no_other_users_folder(tmp_path, name):
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    (tmp_path / "k" / "theirs").mkdir(parents=True)
    os.chown(tmp_path / "k" / "theirs", 4242, 4242)
    (tmp_path / "k" / "theirs").chmod(0o555)
    settings = KernelSettings(sandbox="namespaces", warm=0)
    with LocalKernel(tmp_path / "k", settings=settings, resume=True) as kernel:
        kernel.execute(f"import os\nos.rename('theirs', {name!r})", seconds=SECONDS)
        kernel.execute("x = 1", seconds=SECONDS)
        kernel.put("y", [1])
        kernel.execute("y", seconds=SECONDS)

    about = (tmp_path / "k" / name).stat()
    assert (about.st_uid, oct(about.st_mode)) == (4242, "0o40555")


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root has files of several users")
def test_an_accounts_number_is_no_kernels_user(tmp_path, monkeypatch):
    for name, number in (("account", 62000), ("kernel", 62001)):
        (tmp_path / name).write_text("x")
        os.chown(tmp_path / name, number, number)
    with monkeypatch.context() as patched:
        patched.setattr("tw_autogen.safe_folder.directory_calls._is_account", lambda number: number == 62000)
        hand_over(tmp_path, 62002)

    assert [(tmp_path / name).stat().st_uid for name in ("account", "kernel")] == [62000, 62002]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root has files of several users")
@pytest.mark.parametrize("level", ["landlock", "namespaces"])
@pytest.mark.parametrize("place", ["beside", "below"])
def test_a_closed_file_is_not_moved_to_where_the_host_would_hand_it_over(tmp_path, level, place):
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    granted = tmp_path / "w"
    (granted / "closed").mkdir(parents=True)
    (granted / "other").mkdir()
    granted.chmod(0o777)
    (granted / "other").chmod(0o777)
    (granted / "secret.txt").write_text("secret")
    (granted / "mine.txt").write_text("x")
    (granted / "mine.txt").chmod(0o666)
    own = granted / "k" if place == "below" else tmp_path / "k"
    moves = "".join(
        f"try:\n    os.rename({str(granted / name)!r}, {name!r})\nexcept OSError as error:\n    print(error.errno)\n"
        for name in ("secret.txt", "closed")
    )
    with LocalKernel(own, settings=KernelSettings(sandbox=level, write=(str(granted),), warm=0)) as kernel:
        try:
            kernel.execute("1", seconds=SECONDS)
            (granted / "secret.txt").chmod(0o600)  # after the grant was looked at, which refuses what is closed
            (granted / "closed").chmod(0o700)
            ran = kernel.execute(f"import os\n{moves}", seconds=SECONDS)
        except SandboxError as error:
            pytest.skip(str(error))
        assert ran.stdout.split() == ["18", "18"], ran.error
        kept = "open('a', 'w').close()\nos.mkdir('sub')\nos.rename('a', 'sub/a')\nos.path.exists('sub/a')"
        assert kernel.execute(kept, seconds=SECONDS).result == "True"
        move = f"import shutil\nshutil.move({str(granted / 'mine.txt')!r}, {str(granted / 'other/mine.txt')!r})"
        assert kernel.execute(move, seconds=SECONDS).ok
        kernel.execute("os.kill(os.getpid(), 9)", seconds=SECONDS)
        with pytest.raises(ConfigError, match="is closed to others"):
            kernel.execute("1", seconds=SECONDS)
    assert (granted / "secret.txt").stat().st_uid == 0
