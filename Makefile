# Everything here needs Python 3.11 or newer, make and git; nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help run test lint bench docs reproduce study clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: $(READY)  ## compare every learner on handwritten digits with flipped bits; ends with the path of a report
	$(BIN)/fliptron run --out out

lint: $(READY)  ## format, style, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## lint, then every test and doctest
	$(BIN)/pytest -n auto

docs: $(READY)  ## the documentation site, in docs/_build/html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo docs/_build/html/index.html

reproduce: $(READY)  ## the paper and beyond (half an hour to an hour; needs FLIPTRON_DATA); ends with the path of a report
	$(BIN)/fliptron reproduce --scale desk --out out/paper
	$(BIN)/python benchmarks/quote.py out/paper

PEERS := $(VENV)/.peers

$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	@touch $@

study: $(PEERS)  ## from plan to table: make study NAME=drift (some need FLIPTRON_DATA); without NAME, what there is
	$(BIN)/python benchmarks/study.py $(NAME)

bench: $(PEERS)  ## speed beside peers and beside the hardware (five minutes); also NAME=trials or NAME=cost
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/$(or $(NAME),speed).py

clean:  ## remove the environment and what it made
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache
