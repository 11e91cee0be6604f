"""Runs the host's own tests twice, with its agent and with ours in its place, and compares what fails.

python tests/host_suite/run.py [--suite FOLDER_OR_URL] [--keep FOLDER]

The tests are fetched by git at a pinned commit. What fails with our agent only must stand in `differences.txt`, each
test with a reason; what stands there and passes is an error too, so that the list stays true.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = "https://github.com/ag2ai/ag2-classic"
COMMIT = "86fa5ccb3f9424cee87edb4a9ea58f191ea958ba"
"""Of the host's version 0.14.1, which the extra `autogen` installs."""
CHOSEN = ["test/agentchat", "test/io", "--ignore=test/agentchat/contrib", "--ignore=test/agentchat/realtime"]
NEEDS_A_PROVIDER = "not (openai or gemini or anthropic or deepseek or ollama or integration or docker or redis)"


def fetch(source: str, folder: Path) -> str:
    """Check out the tests, unless they are there; return why that can't be, or nothing."""
    if (folder / "test").is_dir():
        return ""
    git = ["git", "-C", str(folder), "-c", "protocol.file.allow=always"]
    steps = [
        ["git", "init", "--quiet", str(folder)],
        [*git, "fetch", "--quiet", "--depth", "1", source, COMMIT],
        [*git, "checkout", "--quiet", "FETCH_HEAD", "--", "test", "pyproject.toml"],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip() or f"{' '.join(step)} failed"
    return ""


def failed(folder: Path, *, swapped: bool) -> set[str]:
    """Run the tests and return the ids of those that failed."""
    report = folder / ("failed_with_ours.txt" if swapped else "failed_with_the_hosts.txt")
    report.unlink(missing_ok=True)
    environ = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    environ |= {"PYTHONPATH": str(HERE), "TW_SWAP": str(int(swapped)), "TW_FAILED": str(report)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "swap", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-W", "ignore", "--tb=no", "-m", NEEDS_A_PROVIDER, "-o", "timeout=120", *CHOSEN]
    subprocess.run(command, cwd=folder, env=environ, check=False, stdin=subprocess.DEVNULL)
    if not report.exists():
        sys.exit("the host's tests did not run; see above")
    return set(report.read_text(encoding="utf-8").split("\n")) - {""}


def expected() -> dict[str, str]:
    """Return the reason for each test that may differ."""
    lines = (HERE / "differences.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(" | ") for line in lines if line.strip() and not line.startswith("#"))
    return {test.strip(): reason.strip() for test, reason in pairs}


def main() -> int:
    """Compare, and return 1 where something differs that is not expected."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", default=SOURCE, help="where git fetches from: an address or a folder")
    parser.add_argument("--keep", default=".host-suite", help="where the tests are checked out")
    args = parser.parse_args()
    folder = Path(args.keep).resolve()
    if problem := fetch(args.suite, folder):
        print(f"The host's tests can't be fetched from {args.suite}, so nothing was run:\n{problem}")
        return 2
    differing = failed(folder, swapped=True) - failed(folder, swapped=False)
    known = expected()
    new, gone = sorted(differing - set(known)), sorted(set(known) - differing)
    print(f"{len(differing)} tests differ with our agent, {len(known)} are expected to.")
    for test in new:
        print(f"differs, not expected: {test}")
    for test in gone:
        print(f"expected to differ, but does not: {test}")
    return int(bool(new or gone))


if __name__ == "__main__":
    sys.exit(main())
