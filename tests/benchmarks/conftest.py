"""The scripts in `kernels/` are a program, whose files import one another by their bare names; no tests are there."""

collect_ignore = ["kernels"]
