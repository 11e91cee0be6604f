"""The scripts in `kernels/` and `soak/` are programs, whose files import one another by bare names: no tests."""

collect_ignore = ["kernels", "soak"]
