# Everything here needs Python 3.11 or newer, make and git; nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help run test lint bench docs reproduce tune study-learners study-variants study-cost-learners study-drift study-trials study-rates study-rcine study-cost study-coverage clean

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


tune: $(READY)  ## how the default settings were chosen (about ten minutes); writes docs/tuning.md
	$(BIN)/python benchmarks/tune.py

PEERS := $(VENV)/.peers

$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	@touch $@

bench: $(PEERS)  ## speed beside peers and beside the hardware (five minutes); writes benchmarks/results/speed.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py

study-learners: $(PEERS)  ## every learner at its best beside Fliptron (an hour; needs FLIPTRON_DATA); docs/tables/learners.md
	$(BIN)/python benchmarks/learners.py play

study-variants: $(READY)  ## what was tried on the way to Fliptron (three minutes); writes docs/tables/variants.md
	$(BIN)/python benchmarks/variants.py

study-cost-learners: $(READY)  ## what a round of Fliptron costs beside others (half a minute); writes docs/tables/cost.md
	$(BIN)/python benchmarks/cost.py

study-trials: $(READY)  ## what was tried to make a round faster (two minutes); writes docs/tables/trials.md
	$(BIN)/python benchmarks/trials.py

study-drift: $(READY)  ## recovery from a permutation of labels (a minute); writes docs/tables/drift.md
	$(BIN)/python benchmarks/drift.py

study-rates: $(READY)  ## rate estimators on four data sets (an hour; needs FLIPTRON_DATA); writes docs/tables/rates.md
	$(BIN)/python benchmarks/rates.py play

study-rcine: $(READY)  ## RCINE beside RCNBF with true rates (two minutes; needs FLIPTRON_DATA)
	$(BIN)/python benchmarks/rcine.py errors

study-cost: $(READY)  ## what an estimate costs, NREst and plateaus (three minutes)
	$(BIN)/python benchmarks/rcine.py cost

study-coverage: $(READY)  ## do the plateaus' intervals cover where no round is certain? (a minute)
	$(BIN)/python benchmarks/coverage.py

clean:  ## remove the environment and what it made
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache
