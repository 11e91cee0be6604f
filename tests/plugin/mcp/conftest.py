collect_ignore = ["lowlevel.py", "server.py"]
"""Programs that the tests start; they need the extra `mcp`."""
