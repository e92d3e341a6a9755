# Every target creates what it needs; only package registries are reached.

VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
PYTEST := $(PYTHON) -m pytest
CODE   := src tests bench examples hatch_build.py
NOT_RUN := $(CURDIR)/$(VENV)/not-run

.DEFAULT_GOAL := help
.PHONY: help setup demo check chaos format unit test processes unit-and-spark spark conformance bench fuzz sim wheel docs changelog clean

help: ## Say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## Create .venv with riverlog and all that its tests need

$(STAMP): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing $(VENV) && uv pip install --quiet --python $(PYTHON) -e '.[dev]'; \
	else \
	  python3 -m venv $(VENV) && $(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $(STAMP)

demo: $(STAMP) ## Start a node, send orders, add up revenue by window on local Spark; the next run goes on
	@$(PYTHON) examples/revenue.py

check: $(STAMP) ## Formatting, lint, types, import contracts
	@$(VENV)/bin/ruff format --check $(CODE)
	@$(VENV)/bin/ruff check $(CODE)
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo 2>/dev/null || $(VENV)/bin/lint-imports

format: $(STAMP) ## Put the code into the house's format
	@$(VENV)/bin/ruff format $(CODE)
	@$(VENV)/bin/ruff check --fix $(CODE)

unit: $(STAMP) ## Unit, property and scenario tests: no network, no waiting
	@$(PYTEST) tests/test_tidy.py tests/unit tests/property tests/scenarios

test: check ## All that the README promises, in minutes; two halves at a time
	@rm -rf $(NOT_RUN)
	@NOT_RUN=$(NOT_RUN) $(MAKE) --no-print-directory --jobs=2 --output-sync=line processes unit-and-spark
	@$(PYTHON) -m tests.support.not_run $(NOT_RUN)

processes: $(STAMP) # real processes and clients: they wait more than they work
	@$(PYTEST) tests/simulation tests/e2e

unit-and-spark: $(STAMP)
	@$(PYTEST) tests/test_tidy.py tests/unit tests/property tests/scenarios
	@$(PYTEST) tests/fuzz tests/conformance
	@$(PYTEST) -m 'not slow' tests/spark

spark: $(STAMP) ## All tests on Spark: the sessions, the demo, the examples, windows, joins, late rows, kills
	@$(PYTEST) tests/spark

chaos: $(STAMP) ## Kills by the twenty ROUNDS=5 times, Spark's drivers too, 200 producers at a slow disk, a disk that fills up, few open files, topics that come and go (needs root)
	@EXACTLY_ONCE=full $(PYTEST) tests/e2e/test_exactly_once.py
	@PRODUCERS=200 $(PYTEST) -s tests/e2e/test_flow_control.py tests/e2e/test_full_disk.py
	@DESCRIPTORS=full $(PYTEST) tests/e2e/test_descriptors.py
	@CHURN_ROUNDS=500 $(PYTEST) tests/e2e/test_churn.py
	@for round in $$(seq $(or $(ROUNDS),5)); do KILLS_SEED=$$round $(PYTEST) tests/e2e/test_kill.py tests/e2e/test_groups.py || exit 1; done
	@SPARK_KILLS=5 $(PYTEST) -s tests/spark/test_kills.py tests/spark/test_example_kills.py \
	  tests/spark/test_outages.py tests/spark/test_takeovers.py
	@COPIER_RECORDS=100000 COPIER_KILLS=20 COPIER_NODE_KILLS=5 $(PYTEST) tests/e2e/test_copier.py

wheel: $(STAMP) ## Build a wheel, install it into a new environment, and walk the README there as printed
	@$(PYTEST) tests/release

conformance: $(STAMP) ## Every client and foreign suite; a missing one is reported and fails
	@$(PYTHON) -m tests.conformance

fuzz: $(STAMP) ## Hostile bytes for SECONDS=60, against the codec and a real node; SEED= repeats a run
	@$(PYTHON) -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

sim: $(STAMP) ## Simulate SEEDS=200 nodes that lose power, or replay SEED=, ONLY=transactions or quorum; then take each rule away
	@$(PYTHON) -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),200)) $(if $(ONLY),--only $(ONLY))
	@$(if $(SEED),,$(PYTHON) -m tests.simulation --switches)

bench: $(STAMP) ## Measure riverlog and Apache Kafka in one run and print the ratios
	@$(PYTHON) -m bench

docs: $(STAMP) ## Build the documentation as a site with a search, in build/site
	@$(PYTHON) -m tests.support.site
	@$(VENV)/bin/zensical build --clean --strict
	@echo "to read it: python3 -m http.server --bind 127.0.0.1 --directory build/site"

changelog: $(STAMP) ## Gather changelog.d in CHANGELOG.md as unreleased; VERSION=0.2.0 makes it that version
	@$(PYTHON) -m tests.support.changelog $(VERSION)

clean: ## Remove what the targets created
	rm -rf $(VENV) build dist riverlog-demo .mypy_cache .ruff_cache .hypothesis .import_linter_cache
