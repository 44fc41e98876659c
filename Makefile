# Everything a person can do here: `make help`. What a target needs is installed first, into this folder only.

# Where it is set, Python compiles everything anew at each start, and Airflow takes seconds longer for each command.
unexport PYTHONDONTWRITEBYTECODE

PYTHON := .venv/bin/python
UV := scripts/uv.sh
COMPILE := pip compile --override requirements/overrides.txt --universal --python-version 3.11 --generate-hashes \
           --no-emit-index-url --no-header --no-annotate --quiet

# What asks a broker whoever it is. The others of tests/broker start one of their own, or speak to one of three alone.
CLUSTERED := $(addprefix tests/broker/, test_whole_batch.py test_refusals.py test_junk_flood.py test_lost_while_reading.py \
             test_log_view.py test_quota.py test_slice_reader.py test_unit_reader.py test_headroom.py test_promote.py \
             test_verify_range.py test_maintain.py test_metrics.py reading_from_a_rack.py)
EXECUTORS := $(addprefix tests/domain/, executors_of_a_standalone_cluster.py \
             executors_in_networks_of_their_own.py executors_on_kubernetes.py)

.DEFAULT_GOAL := help
.PHONY: help demo up down test check test-docker test-cluster test-airflow faults schedules mutants soak hostile fuzz bench bench-quick scale lock release audit sbom lock-jars clean export runtime dev

help: ## Show what there is to do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: runtime ## Start everything, run a batch from end to end, and show what came out
	$(PYTHON) -m wavestitch.demo

up: runtime ## Start Kafka and Airflow on this machine and say where they are
	.venv/bin/wavestitch up

down: runtime ## Stop what `make up` started; data stay
	.venv/bin/wavestitch down

test: dev ## Run all tests (they start real Kafka brokers), WORKERS=3 at a time: on two processors one of them waits
	$(PYTHON) -m pytest -n $(or $(WORKERS),3) --no-loadscope-reorder --durations 40

check: dev ## Lint, formatting, types, the direction of imports, scripts, and what is known to be dangerous
	.venv/bin/ruff check .
	.venv/bin/ruff check --preview --select RUF027 .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/shellcheck -x scripts/*.sh .ci/run $(shell grep -lE '^\#!/bin/sh' docker/bin/*)
	.venv/bin/hadolint docker/Dockerfile
	.venv/bin/bandit -q -ll -s B506,B610,B704 -r wavestitch consumers spark_apps dags plugins scripts
	$(PYTHON) scripts/advisories.py

test-docker: dev ## Build the image, run every service of docker/compose.yaml in it and the demo on them; as root, needs buildah
	$(PYTHON) -m tests.docker

test-cluster: dev ## The same promises on three brokers, by a login that may do no more than it needs, reading from a rack
	$(PYTHON) -m pytest --cluster $(CLUSTERED) tests/faults/test_cluster_faults.py $(EXECUTORS)

test-airflow: dev ## Do in a real browser what an operator does in Airflow; needs Chromium (Debian: chromium)
	$(PYTHON) -m pytest tests/stack/pages_in_a_browser.py tests/stack/waveforms_in_a_browser.py tests/stack/airflow_in_a_browser.py tests/stack/airflow_started_again.py tests/stack/backfills_in_airflow.py tests/stack/two_schedulers.py tests/stack/code_of_a_run.py

faults: dev ## Run the whole fault campaign, MINUTES=55 at a time, WORKERS=4 cases side by side; goes on where it stopped; MINUTES=0 says what is left
	$(PYTHON) -m tests.faults.campaign $(if $(MINUTES),--minutes $(MINUTES)) $(if $(WORKERS),--workers $(WORKERS))

schedules: dev ## Play all schedules of two batches, rewinds or decisions at once over the fakes, MINUTES=55 at a time, and count them
	$(PYTHON) -m tests.schedules $(if $(MINUTES),--minutes $(MINUTES))

mutants: dev ## Try generated mutants of the product on the tests that are about them, MINUTES=55 at a time; goes on where it stopped
	$(PYTHON) -m tests.mutants $(if $(MINUTES),--minutes $(MINUTES))

soak: dev ## Run everything at once for HOURS=1, and judge: nothing lost, nothing growing without bound
	$(PYTHON) -m tests.soak --hours $(or $(HOURS),1)

hostile: dev ## Count the kinds of hostile input, and how many are contained
	$(PYTHON) -m tests.hostile.count

fuzz: dev ## Fuzz parsers for MINUTES=1 each, up to GOAL=60 of a processor in all, JOBS=2 side by side; Linux on x86-64 alone
	$(PYTHON) -m tests.fuzz.campaign --minutes $(or $(MINUTES),1) --goal $(or $(GOAL),60) --jobs $(or $(JOBS),2)

bench: runtime ## Measure against what one would take instead; rewrites docs/benchmarks.md and docs/scale.md
	$(PYTHON) -m benchmarks.side_by_side
	$(PYTHON) -m benchmarks.scale

bench-quick: runtime ## The ratios that matter, beside the committed ones
	$(PYTHON) -m benchmarks.quick

scale: runtime ## What 1 GB/s, 10 GB/s and 200 streams take, from the committed figures; rewrites docs/scale.md
	$(PYTHON) -m benchmarks.scale

lock: ## Resolve requirements/*.in anew and pin the result by hash
	$(UV) $(COMPILE) requirements/runtime.in -o requirements/runtime.txt
	$(UV) $(COMPILE) requirements/export.in -o requirements/export.txt
	$(UV) $(COMPILE) requirements/dev.in -o requirements/dev.txt
	sed -i.old '/^--find-links/d' requirements/runtime.txt requirements/export.txt requirements/dev.txt
	rm -f requirements/runtime.txt.old requirements/export.txt.old requirements/dev.txt.old

release: runtime ## Build the wheel and the sources into dist/, with the pins that were tested
	$(PYTHON) -m hatchling build -t wheel -t sdist -d dist
	cp requirements/runtime.txt requirements/export.txt dist/

audit: dev ## Keep of an export of advisories (EXPORT=all.zip, or a folder) what is about pinned packages, and check them
	$(PYTHON) scripts/advisories.py take $(or $(EXPORT),$(error say EXPORT=FILE))

sbom: runtime ## Write the bill of materials (CycloneDX) of what is locked: sbom.json
	$(PYTHON) scripts/sbom.py >sbom.json

lock-jars: runtime ## Fetch the jars anew and write down their digests
	$(PYTHON) scripts/pin_jars.py

clean: ## Stop everything and delete all that was made here: environment, topics, tables
	[ ! -x .venv/bin/wavestitch ] || .venv/bin/wavestitch down
	rm -rf .venv .wavestitch dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

export: ## Install what `wavestitch export` and `.to_xarray()` need on top
	@scripts/bootstrap.sh export

runtime:
	@scripts/bootstrap.sh runtime

dev:
	@scripts/bootstrap.sh dev
