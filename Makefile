# A bare clone and Python >= 3.11 are enough: every target makes .venv when it needs it.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest
WORKERS := -n 2 --dist loadgroup --hypothesis-profile=ci

# uv resolves for every platform and Python version at once. No index is written down, and the
# command in the header is ours: nothing of the machine that compiled a file gets into it.
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --no-config --universal \
	--python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command 'make requirements'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all docs-check lint format bench fuzz crash soak requirements upgrade clean

help: ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo '  PYTHON=python3.12 picks the interpreter of .venv; ARGS="..." goes to test, test-all, bench, fuzz, crash and soak.'

demo: $(STAMP) ## run the bundled example from end to end
	$(BIN)/corollary demo

test: $(STAMP) ## run the tests: everything of one kind once, a sample of the matrix
	$(PYTEST) $(WORKERS) $(ARGS)

test-all: $(STAMP) ## run the whole matrix; SHARD=3/12 runs the third of twelve parts
	$(PYTEST) $(WORKERS) --all $(if $(SHARD),--shard $(SHARD)) $(ARGS)

docs-check: $(STAMP) ## run the examples of README.md and docs/
	$(PYTEST) -q tests/docs $(ARGS)

lint: $(STAMP) ## check style, types and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## mend style where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## run the benchmarks
	$(BIN)/python -m bench $(ARGS)

fuzz: $(STAMP) ## compare random programs and changes with recomputation
	$(BIN)/python tests/fuzz.py $(ARGS)

crash: $(STAMP) ## kill processes at every point, damage files, let system calls fail
	$(PYTEST) -n 2 -q --hypothesis-profile=ci -m crash $(ARGS)

soak: $(STAMP) ## make thousands of transactions of one row: time and disk have to stay flat
	$(BIN)/python tests/soak.py $(ARGS)

requirements: $(STAMP) ## recompile requirements/*.txt after a change of pyproject.toml
	$(COMPILE) $(ARGS) --extra dev --output-file requirements/dev.txt
	$(COMPILE) $(ARGS) --constraint requirements/dev.txt --output-file requirements/runtime.txt

upgrade: ## recompile requirements/*.txt with the newest versions
	$(MAKE) requirements ARGS=--upgrade

clean: ## remove caches and build output (.venv stays)
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	find src tests bench -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The environment: pinned versions, checked by hash, then this package itself in place. It is made
# anew whenever the pinned versions or pyproject.toml are newer than the stamp.
$(STAMP): requirements/dev.txt pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
		echo 'error: no "$(PYTHON)" here. Install Python 3.11 or newer, or say which: make PYTHON=/path/to/python3'; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Corollary needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" -V 2>&1)."; \
		echo '       Say which one to use: make PYTHON=python3.12'; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
		echo 'error: $(PYTHON) cannot make virtual environments: its ensurepip module is missing.'; \
		echo '       On Debian and Ubuntu: apt-get install python3-venv'; exit 1; }
	test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
