# Two commands for a fresh machine: `make demo` and `make test`. Each makes .venv if it is missing.
PYTHON ?= python3
BIN := .venv/bin

HOSTS := autogen pyautogen pyautogen02 agentchat02 agentchat
HOST_BIN := .venv-hosts
SUITE_NEEDS := pytest-asyncio pytest-cov dirty-equals freezegun fastapi nbconvert nbformat docker aiofiles mcp
BENCH_BIN := .venv-bench
BENCH_peers := ".[bench]"
BENCH_arrow := "." psutil pyarrow

.PHONY: help demo docs test test-hosts test-host-suite test-web bench bench-answers soak metrics check lint wheel clean

help:  ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev,gateway-server,mcp,ml,report,science]"
	@touch .venv/ready

.venv/web: .venv/ready  # a browser's driver of some 140 MB and JupyterLab of 80 MB, so not with the rest
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[test-web]"
	@touch .venv/web

test-web: .venv/web  ## the tests that need a browser, in the Chromium of the system
	$(BIN)/python -m pytest -q -n auto tests/roles/test_web_explorer.py tests/notebook/test_jupyterlab.py

.venv/docs: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch .venv/docs

docs: .venv/docs  ## the documentation as a site in ./site; a link that leads to nothing is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

demo: .venv/ready  ## the whole way, from recorded model replies; leaves chart, table and notebook in ./tw-demo
	$(BIN)/tw-autogen demo

test: .venv/ready lint  ## linter, types and tests; no key, no network
	$(BIN)/python -m pytest -n auto -m "not slow"

$(HOST_BIN)/%/ready: pyproject.toml
	$(PYTHON) -m venv $(HOST_BIN)/$*
	$(HOST_BIN)/$*/bin/pip install --quiet --disable-pip-version-check --editable ".[$*,test]"
	@touch $@

test-hosts: $(HOSTS:%=$(HOST_BIN)/%/ready)  ## the hosts' tests, each lineage in an environment of its own; `HOSTS=pyautogen` for one
	@for host in $(HOSTS); do \
		echo "== $$host"; \
		$(HOST_BIN)/$$host/bin/python -m pytest -q -n auto -p no:cacheprovider tests/hosts || exit 1; \
	done

$(HOST_BIN)/suite/ready: pyproject.toml
	$(PYTHON) -m venv $(HOST_BIN)/suite
	$(HOST_BIN)/suite/bin/pip install --quiet --disable-pip-version-check --editable ".[autogen,test]" $(SUITE_NEEDS)
	@touch $@

test-host-suite: $(HOST_BIN)/suite/ready  ## the host's own tests with our agent in its agent's place; `HOST_SUITE=path` for a clone
	$(HOST_BIN)/suite/bin/python tests/host_suite/run.py $(if $(HOST_SUITE),--suite $(HOST_SUITE))

$(BENCH_BIN)/%/ready: pyproject.toml
	$(PYTHON) -m venv $(BENCH_BIN)/$*
	$(BENCH_BIN)/$*/bin/pip install --quiet --disable-pip-version-check --editable $(BENCH_$*)
	@touch $@

bench: $(BENCH_BIN)/peers/ready $(BENCH_BIN)/arrow/ready  ## medians and spread beside peers; `BENCH="--rounds 1 --keep"` for less, and a file
	$(BENCH_BIN)/peers/bin/python -m pytest -q -s -p no:cacheprovider --timeout 0 --benchmark-columns=median,iqr,min,max,ops tests/benchmarks
	$(BENCH_BIN)/peers/bin/python tests/benchmarks/kernels --arrow $(BENCH_BIN)/arrow/bin/python $(BENCH)

soak: $(BENCH_BIN)/arrow/ready  ## 64 sessions at work with faults at random, 30 minutes or 20 000 cells; `SOAK="--sessions 8 --minutes 1"` for less
	$(BENCH_BIN)/arrow/bin/python tests/benchmarks/soak $(SOAK)

lint: .venv/ready  ## linter and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench-answers: .venv/ready  ## a public benchmark's questions, graded as published: `DATA=DIR`, and `BENCHMARK=math`, `ARGS="--jobs 4"`
	$(BIN)/python -m tests.benchmarks.answers $(or $(BENCHMARK),dabench) --data "$(DATA)" $(ARGS)

metrics: .venv/ready  ## the package's structure as numbers; `.venv/bin/python tests/metrics.py --list dialect|faces|parameters` for places
	$(BIN)/python tests/metrics.py

check: test  ## everything, also what takes longer
	$(BIN)/python -m pytest -n auto -m slow

wheel: .venv/ready  ## build dist/
	$(BIN)/python -m build --outdir dist .

clean:  ## remove what was made here
	rm -rf .venv $(HOST_BIN) .host-suite $(BENCH_BIN) dist build site tw-demo .mypy_cache .ruff_cache .pytest_cache
