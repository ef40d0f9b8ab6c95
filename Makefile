# One environment for everything: `make eval` prints the table, `make test` runs every check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Extra arguments for the main job, e.g. make eval ARGS="--data locomo10.json --k 5,10,20"
ARGS ?=

.PHONY: eval test setup lint format typecheck clean

eval: $(VENV)/.ready-eval
	$(BIN)/mempursuit-eval run $(ARGS)

test: $(VENV)/.ready-test lint typecheck
	$(BIN)/pytest

lint: $(VENV)/.ready-test
	$(BIN)/pre-commit run --all-files --show-diff-on-failure

typecheck: $(VENV)/.ready-test
	$(BIN)/mypy

format: $(VENV)/.ready-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(VENV)/.ready-test

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# SimpleMem's own dependencies pull torch; its store and retriever run without it, so it is
# installed alone and the evaluator hands its own encoder in.
$(VENV)/.ready-eval: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[eval]'
	$(BIN)/python -m pip install --quiet --no-deps 'simplemem>=0.1.0,<0.2'
	touch $@

$(VENV)/.ready-test: $(VENV)/.ready-eval
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
