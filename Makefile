# The one definition of "green": people, hooks and CI call these targets and nothing else.
#
#   make test    lint, then the fast tests      make demo    the paper, quickly
#   make lint    ruff and mypy                  make bench   the benchmarks
#   make slow    the long checks                make docs    the pages: build/site/index.html
#                                               make clean   remove .venv, caches, output
#
# Each target makes .venv if it is missing and installs what it needs when pyproject.toml has
# changed: `demo` the command line alone, the others the developers' tools too.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
TORCH := .venv/.torch

# Nothing of another environment leaks in.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

# lint and the installation of PyTorch run in parallel
MAKEFLAGS += -j2

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.PHONY: test lint slow demo bench docs clean

test: lint $(TORCH)
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src

slow: $(READY) $(TORCH)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

demo: $(DEMO)
	$(BIN)/cfgd reproduce

bench: $(READY)
	$(BIN)/python -m cfgd.apps.bench
	$(BIN)/cfgd bench

# a warning is an error, and every link and anchor is checked
docs: $(READY) $(TORCH)
	$(BIN)/python -m sphinx -E -a -q -n -W --keep-going -d build/doctrees docs build/site
	@echo 'build/site/index.html'

$(DEMO): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[dev]'
	@touch $@

# the tests of the PyTorch integration are skipped without it
$(TORCH): pyproject.toml | $(READY)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[test-torch]' || \
		echo 'PyTorch could not be installed: its tests will be skipped' >&2
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv --clear .venv

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .jax_cache build dist report bench docs/gallery
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
