collect_ignore = ["hostile.py", "lowlevel.py", "malformed.py", "notes.py", "server.py"]
"""Programs that the tests start; they need the extra `mcp`."""
