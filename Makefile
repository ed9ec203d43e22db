# Everything runs in .venv, made from the lock file by plain pip. Python 3.11 or newer and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := src tests conftest.py tools benchmarks examples noxfile.py
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 3  # on two cores: journeys wait more than they compute
export PYTHONDONTWRITEBYTECODE :=  # else each of many processes would compile all modules anew

.PHONY: help install demo test test-research test-times lint format bench bench-peers audit fuzz docs docs-serve docs-test docs-outputs docs-pictures docs-next lock test-all matrix dist clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP)  ## .venv with everything for development, from the lock file

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

format: $(STAMP)  ## let ruff mend style and layout
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
	$(BIN)/python -W ignore -m benchmarks.audit --html audit.html --json audit.json $(ARGS)

docs: docs-pictures  ## build the site into site/; nothing is fetched, and a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: $(STAMP)  ## show the site on http://127.0.0.1:8000 while you write
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

docs-test: $(STAMP)  ## run every example and every block of README and docs; check outputs, links and prose
	$(BIN)/python -m pytest tests/docs $(ARGS)

docs-outputs: $(STAMP)  ## run the blocks of all pages, or of PAGES="docs/a.md docs/b.md", and write what they print below them
	$(BIN)/python -m tools.docs.outputs $(PAGES)
	$(BIN)/python -m tools.docs.notebook

docs-pictures: $(STAMP)  ## draw the pictures of the pages anew
	$(BIN)/python -W ignore -m tools.docs.pictures

docs-next: $(STAMP)  ## the last line of every page: the one that comes next in mkdocs.yml
	$(BIN)/python -m tools.docs.following

lock:  ## refresh the lock files with uv; no index host is written
	uv pip compile $(LOCK) --extra dask --extra report --extra service --extra postgres --group dev pyproject.toml -o requirements/dev.txt
	uv pip compile $(LOCK) --extra all --group test --group build pyproject.toml -o requirements/all.txt
	uv pip compile $(LOCK) --group peers pyproject.toml -o requirements/peers.txt
	uv pip compile $(LOCK) --resolution lowest-direct --extra dask --extra report --extra service --extra postgres --group test --group build pyproject.toml -o requirements/lowest.txt

# Extras are kept: pip would take the newest of a library that is asked for with one, and find no hash for it.
LOCK := --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-emit-index-url --no-header --no-annotate --quiet --upgrade

test-all:  ## command line and federation beside Flower and its older libraries, in .venv-all
	$(PYTHON) -m venv .venv-all
	.venv-all/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/all.txt
	.venv-all/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	.venv-all/bin/python -m pytest tests/cli tests/federate $(ARGS)

matrix: .venv-matrix/bin/nox  ## the suite on every Python that is installed here, and with the oldest libraries allowed
	.venv-matrix/bin/nox $(ARGS)

.venv-matrix/bin/nox:
	$(PYTHON) -m venv .venv-matrix
	.venv-matrix/bin/python -m pip install --quiet --disable-pip-version-check nox

dist: $(STAMP)  ## wheel and sdist in dist/, checked, and tried: the wheel in a new environment runs `kveil demo`
	rm -rf dist .venv-dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd .venv-dist && bin/kveil --version && bin/kveil demo -o demo

clean:  ## remove environments and caches
	rm -rf .venv* .nox dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
