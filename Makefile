# Thin: what each target does stands in one or two commands that can be typed by hand.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test check bench

demo: $(VENV)/installed
	$(BIN)/seed-opd demo

test: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -v --durations 10

check: $(VENV)/installed
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(VENV)/installed
	$(BIN)/python benchmarks/alfworld.py

$(VENV)/installed: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --disable-pip-version-check --quiet -c requirements.lock -e '.[test]'
	touch $@
