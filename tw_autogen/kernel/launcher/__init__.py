"""What runs on this machine before a kernel's first cell: fork server, supervisor, sandbox.

Standard library only (and ipykernel in `app`), because the interpreter that runs it may be another one than the host's;
there the package is called `tw_launcher`. Its modules import one another relatively.
"""
