"""`python -m tw_autogen.cli` is `tw-autogen`."""

from tw_autogen.cli.main import main

if __name__ == "__main__":
    main(prog_name="tw-autogen")
