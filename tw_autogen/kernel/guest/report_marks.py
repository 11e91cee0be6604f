"""How the host recognizes a report: apart from the rest of the bridge, which only kernels need to import."""

SOURCE = "tw_autogen"
"""The `source` of our payload in an `execute_reply`."""
QUIET = "quiet"
"""In a report: no output comes behind this reply, and no `idle`."""
