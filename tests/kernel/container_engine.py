"""A stand-in for docker where there is none: reads its command line strictly, runs the command as a child process.

What it doesn't do: to confine. It refuses what docker would refuse (unknown options, an image that is not there, mounts
of nothing), gives the command only the environment that docker would, and passes on signals and exit codes
as docker does.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

IMAGES = {"tw-kernel"}


def state():
    """Give the folder in which running containers are taken down."""
    return Path(os.environ["TW_TEST_ENGINE"])


def fail(words, code=125):
    print(f"docker: {words}", file=sys.stderr)
    sys.exit(code)


def run(words):
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for flag in ("--rm", "--interactive", "--read-only"):
        parser.add_argument(flag, action="store_true")
    for option in (
        "--name", "--network", "--memory", "--memory-swap", "--pids-limit", "--user", "--workdir", "--pull",
        "--sig-proxy", "--log-driver",
    ):  # fmt: skip
        parser.add_argument(option)
    for option in ("--cap-drop", "--security-opt", "--tmpfs", "--mount", "--env", "--label"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    try:
        asked = parser.parse_args(words)
    except argparse.ArgumentError as error:
        fail(error)
    if asked.image not in IMAGES:
        fail(f"Error response from daemon: No such image: {asked.image}")
    for mount in asked.mount:
        fields = dict(part.split("=", 1) for part in mount.split(","))
        if fields["type"] != "bind" or not os.path.isdir(fields["source"]) or fields["source"] != fields["target"]:
            fail(f"invalid mount {mount}")
    env = {"PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin"}
    for one in asked.env:
        name, given, value = one.partition("=")
        if given or name in os.environ:
            env[name] = value if given else os.environ[name]
    stdin = None if asked.interactive else subprocess.DEVNULL
    try:
        child = subprocess.Popen(asked.command, cwd=asked.workdir, env=env, stdin=stdin, start_new_session=True)
    except OSError as error:
        fail(error, 127)
    place = state() / asked.name
    place.write_text(json.dumps({"pid": child.pid, "words": words}))
    code = child.wait()
    place.rename(state() / f"{asked.name}.removed")
    sys.exit(code if code >= 0 else 128 - code)


def find(name):
    try:
        return json.loads((state() / name).read_text())
    except FileNotFoundError:
        fail(f"Error response from daemon: No such container: {name}", 1)


def main(verb, *words):
    if verb == "run":
        run(list(words))
    *options, name = words
    found = find(name)
    if verb == "inspect":
        print(json.dumps([{"State": {"Running": True, "Pid": found["pid"]}}]))
    elif verb == "kill":
        (wanted,) = [option.partition("=")[2] for option in options if option.startswith("--signal=")] or ["KILL"]
        os.kill(found["pid"], signal.Signals[f"SIG{wanted}"])
    elif verb in ("rm", "stop"):
        if verb == "rm" and "--force" not in options:
            fail("cannot remove a running container", 1)
        os.killpg(found["pid"], signal.SIGKILL)
    else:
        fail(f"'{verb}' is not a docker command", 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
