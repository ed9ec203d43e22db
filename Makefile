# Everything runs in .venv, made from the lock file by plain pip. Python 3.11 or newer and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := src tests benchmarks examples
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 3  # on two cores: journeys wait more than they compute
export PYTHONDONTWRITEBYTECODE :=  # else each of many processes would compile all modules anew

.PHONY: install demo test test-research test-times lint format bench bench-peers audit fuzz docs lock test-all clean

install: $(STAMP)

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: $(STAMP)  ## the main job: a table, one command, private centres and a guarantee
	$(BIN)/kveil demo

test: $(STAMP)  ## all tests but the reproductions; the vault's own tests cover 98 % of its lines and branches
ifdef ARGS
	$(PYTEST) $(ARGS)
else
	$(PYTEST) tests/kernel -n 2 --cov=kveil.kernel --cov-branch --cov-report=term --cov-fail-under=98 -q
	$(PYTEST) tests src/kveil --ignore=tests/kernel -m "not research" -n $(WORKERS) --dist load --maxschedchunk 2 --doctest-modules --durations=10
endif

test-research: $(STAMP)  ## figures and tables of papers, drawn anew at small size
	$(PYTEST) tests -m research -n 2 --dist worksteal

test-times: $(STAMP)  ## which tests take longest; they are run first
	$(PYTEST) tests src/kveil -m "not research" --doctest-modules --junit-xml=.times.xml -q
	$(BIN)/python -m benchmarks.test_times .times.xml tests/times.json

lint: $(STAMP)  ## ruff, mypy strict, and the arrows between the rooms
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(STAMP)  ## speed and memory, as ratios with a verdict each
	$(BIN)/python -m benchmarks

fuzz: $(STAMP)  ## a million damaged files and messages, for every reader
	$(BIN)/python -m benchmarks.fuzz --cases 30000 $(ARGS)

bench-peers: .venv-peers/.installed  ## k-means beside other libraries, in .venv-peers: diffprivlib needs an older scikit-learn
	.venv-peers/bin/python -m benchmarks.peers_kmeans $(ARGS)

.venv-peers/.installed: requirements/peers.txt pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/peers.txt
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

audit: $(STAMP)  ## attack every model, every broken twin and, where .venv-peers is there, diffprivlib's KMeans
	$(BIN)/python -W ignore -m benchmarks.audit --html audit.html $(ARGS)

docs: $(STAMP)  ## run every example and every line of code in README and docs
	$(BIN)/python -m pytest tests/docs $(ARGS)

lock:  ## refresh the lock files with uv; no index host is written
	uv pip compile $(LOCK) --extra dask --extra report --extra service --extra postgres --group dev pyproject.toml -o requirements/dev.txt
	uv pip compile $(LOCK) --extra all --group test --group build pyproject.toml -o requirements/all.txt
	uv pip compile $(LOCK) --group peers pyproject.toml -o requirements/peers.txt

LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --upgrade

test-all:  ## command line and federation beside Flower and its older libraries, in .venv-all
	$(PYTHON) -m venv .venv-all
	.venv-all/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/all.txt
	.venv-all/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	.venv-all/bin/python -m pytest tests/cli tests/federate $(ARGS)

clean:
	rm -rf $(VENV) .venv-all .venv-peers .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
