# Two commands for a fresh machine: `make demo` and `make test`. Each makes .venv if it is missing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test check lint wheel clean

help:  ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch .venv/ready

demo: .venv/ready  ## the whole way, from recorded model replies; leaves chart, table and notebook in ./tw-demo
	$(BIN)/tw-autogen demo

test: .venv/ready lint  ## linter, types and tests; no key, no network
	$(BIN)/python -m pytest -n auto -m "not slow"

lint: .venv/ready  ## linter and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: test  ## everything, also what takes longer
	$(BIN)/python -m pytest -m slow

wheel: .venv/ready  ## build dist/
	$(BIN)/python -m build --outdir dist .

clean:  ## remove what was made here
	rm -rf .venv dist build tw-demo .mypy_cache .ruff_cache .pytest_cache
