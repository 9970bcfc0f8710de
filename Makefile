# Everything here needs Python 3.11 to 3.13, make and git; nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

LAB := $(VENV)/.lab
SERVE := $(VENV)/.serve
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help run test suite openapi lint wheel release-check bench docs reproduce drill crash soak fuzz bench-serve serve study clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(LAB): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[lab]'
	@touch $@

$(READY): $(LAB)
	$(INSTALL) -e '.[dev]'
	@touch $@

$(SERVE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[serve]'
	@touch $@

serve: $(SERVE)  ## the decision service, asked by a made-up shop: open the address that it prints; Ctrl-C ends it
	@$(BIN)/fliptron serve --demo $(if $(PORT),--port $(PORT))

run: $(LAB)  ## compare eleven learners on handwritten digits with flipped bits; ends with the path of a report
	$(BIN)/fliptron run --out out

lint: $(READY)  ## format, style, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel: $(READY)  ## the wheel, installed alone in an environment of its own, and played with
	rm -rf out/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir out/wheel .
	$(PYTHON) -m venv out/wheel/environment
	out/wheel/environment/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt out/wheel/*.whl
	out/wheel/environment/bin/python -I tests/played.py

release-check:  ## build both archives, look through them, and play with the wheel on every Python that is here (ten minutes)
	$(PYTHON) tests/release.py

# The suite keeps all cores busy by itself; beside it the others, one by one, fill what is idle.
test: $(READY)  ## lint, types, the site, the wheel, every test and doctest
	@$(MAKE) --no-print-directory --jobs=2 --output-sync suite lint docs wheel openapi

suite: $(READY)
	$(BIN)/pytest -n auto

openapi: $(READY)  # its tests share one name, and workers run a name once
	$(BIN)/pytest tests/test_openapi.py

docs: $(READY)  ## the documentation site, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo docs/_build/html/index.html

SCALE ?= desk
reproduce: $(READY)  ## the paper and beyond (desk: under an hour; SCALE=paper: hours; needs FLIPTRON_DATA); ends with the path of a report
	$(BIN)/fliptron reproduce --scale $(SCALE) --out out/paper
	$(BIN)/python benchmarks/quote.py out/paper $(SCALE)

drill: $(READY)  ## kill a reproduction again and again: does it end as one left alone? (three minutes)
	$(BIN)/python benchmarks/drill.py

crash: $(READY)  ## kill the service 200 times, cut the power 1,000 times, kill replicas: is anything lost? (40 minutes; KILLS=20)
	$(BIN)/python benchmarks/crash.py $(or $(KILLS),200)
	$(BIN)/python benchmarks/powercut.py
	$(BIN)/python benchmarks/crash_postgres.py

soak: $(READY)  ## ask one server all kinds of things for half an hour: errors, memory, journal (MINUTES=5)
	$(BIN)/python benchmarks/soak.py $(or $(MINUTES),30)

fuzz: $(READY)  ## ask the service more than 2,000 odd things, by its own description
	FLIPTRON_CASES=420 $(BIN)/pytest tests/test_openapi.py

bench-serve: $(READY)  ## what durability costs the service, beside the same application without storage (five minutes)
	$(BIN)/python benchmarks/serve.py

study: $(READY)  ## from plan to table: make study NAME=drift (some need FLIPTRON_DATA); without NAME, what there is
	$(BIN)/python benchmarks/study.py $(NAME)

bench: $(READY)  ## speed beside peers and beside the hardware (five minutes); also NAME=trials or NAME=cost
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/$(or $(NAME),speed).py

clean:  ## remove the environment and what it made
	rm -rf $(VENV) out docs/_build docs/examples .pytest_cache .mypy_cache .ruff_cache
