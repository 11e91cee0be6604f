"""As root at the level `landlock`, what is closed to code stays so, wherever code could move it."""

import os
import sys

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel

SECONDS = 60


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root has files of several users")
@pytest.mark.parametrize("level", ["landlock", "namespaces"])
@pytest.mark.parametrize("place", ["beside", "below"])
def test_a_closed_file_is_not_moved_to_where_the_host_would_hand_it_over(tmp_path, level, place):
    for one in (tmp_path, *tmp_path.parents[:2]):
        one.chmod(0o755)
    granted = tmp_path / "w"
    (granted / "closed").mkdir(parents=True)
    (granted / "other").mkdir()
    granted.chmod(0o777)
    (granted / "other").chmod(0o777)
    (granted / "secret.txt").write_text("secret")
    (granted / "secret.txt").chmod(0o600)
    (granted / "closed").chmod(0o700)
    (granted / "mine.txt").write_text("x")
    (granted / "mine.txt").chmod(0o666)
    own = granted / "k" if place == "below" else tmp_path / "k"
    moves = "".join(
        f"try:\n    os.rename({str(granted / name)!r}, {name!r})\nexcept OSError as error:\n    print(error.errno)\n"
        for name in ("secret.txt", "closed")
    )
    with LocalKernel(own, settings=KernelSettings(sandbox=level, write=(str(granted),), warm=0)) as kernel:
        try:
            ran = kernel.execute(f"import os\n{moves}", seconds=SECONDS)
        except SandboxError as error:
            pytest.skip(str(error))
        assert ran.stdout.split() == ["18", "18"], ran.error
        kept = "open('a', 'w').close()\nos.mkdir('sub')\nos.rename('a', 'sub/a')\nos.path.exists('sub/a')"
        assert kernel.execute(kept, seconds=SECONDS).result == "True"
        move = f"import shutil\nshutil.move({str(granted / 'mine.txt')!r}, {str(granted / 'other/mine.txt')!r})"
        assert kernel.execute(move, seconds=SECONDS).ok
        kernel.execute("os.kill(os.getpid(), 9)", seconds=SECONDS)
        again = kernel.execute("import os\nsorted(os.listdir('.'))", seconds=SECONDS)
        assert "secret.txt" not in again.result
    assert (granted / "secret.txt").stat().st_uid == 0
