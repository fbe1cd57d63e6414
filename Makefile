# The one definition of "green": people, hooks and CI call these targets and nothing else.
#
#   make test    lint, then the fast tests      make demo    the paper, quickly
#   make lint    ruff and mypy                  make bench   the benchmarks
#   make slow    the long checks                make docs    the pages: build/site/index.html
#                                               make clean   remove .venv, caches, output
#
# Each target makes .venv if it is missing and installs what it needs when pyproject.toml has
# changed: `demo` the command line alone, `test` and `lint` their tools, the others all tools.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
ALL := .venv/.all
TORCH_ALONE := .venv/.torch-alone
TORCH := .venv/.torch
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
NO_TORCH := echo 'PyTorch could not be installed: its tests will be skipped' >&2

# Nothing of another environment leaks in.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

# PyTorch is installed while the other packages are, and the rest of it while lint runs.
MAKEFLAGS += -j2

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.PHONY: test lint slow demo bench docs clean

# a worker runs all tests of a file, which share compiled programs, processes and browsers
test: lint $(TORCH)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src

slow: $(ALL) $(TORCH)
	$(BIN)/python -m pytest -n 2 -m slow

demo: $(DEMO)
	$(BIN)/cfgd reproduce

bench: $(ALL)
	$(BIN)/python -m cfgd.apps.bench
	$(BIN)/cfgd bench

# a warning is an error, and every link and anchor is checked
docs: $(ALL) $(TORCH)
	$(BIN)/python -m sphinx -E -a -q -n -W --keep-going -d build/doctrees docs build/site
	@echo 'build/site/index.html'

$(DEMO): pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[cli]'
	@touch $@

$(READY): pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[test,lint]'
	@touch $@

$(ALL): pyproject.toml | $(READY) $(TORCH)
	$(INSTALL) --editable '.[dev]'
	@touch $@

# Two pips may run at a time because they have no package in common: torch, without what it needs,
# is the largest package of all. The tests of its integration are skipped without it.
$(TORCH_ALONE): pyproject.toml | $(BIN)/python
	$(INSTALL) --no-deps "$$($(BIN)/python -c "$$PINNED")" || $(NO_TORCH)
	@touch $@

$(TORCH): $(TORCH_ALONE) | $(READY)
	$(INSTALL) "$$($(BIN)/python -c "$$PINNED")" || $(NO_TORCH)
	@touch $@

define PINNED
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"]["test-torch"])
endef
export PINNED

$(BIN)/python:
	$(PYTHON) -m venv --clear .venv

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .jax_cache build dist report bench docs/gallery
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
