# The two commands of this repository:
#   make demo   the packaged sample end to end on this machine
#   make test   lint, types, tests
# Both make the environment first (about three minutes, once) and reuse it later.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
# mypy and editors follow the package mapping (utils/ is lmms_eval_tasks.utils) only in strict
# editable mode, which links file by file: repeated when a file comes or goes.
SOURCES := $(shell find lmms_eval_tasks utils judges leaderboards -type f ! -name '*.pyc' | LC_ALL=C sort)
LINKED := $(VENV)/.linked-$(shell echo $(SOURCES) | cksum | cut -d' ' -f1)

.PHONY: demo test lint types unit env clean

demo: env
	$(BIN)/lmms-eval-tasks demo

test: lint types unit

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# From another folder: in this one mypy would take lmms_eval_tasks/ without the mapped utils/ and judges/.
types: env
	cd $(VENV) && bin/mypy --config-file $(CURDIR)/pyproject.toml

# A file's tests stay in one process: many share runs of the host. Each worker needs about 4 GB.
unit: env
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

env: $(LINKED)

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip "setuptools>=77" wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]" --config-settings editable_mode=strict
	touch $@

$(LINKED): $(VENV)/.installed
	rm -f $(VENV)/.linked-*
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --config-settings editable_mode=strict
	touch $@

clean:
	rm -rf $(VENV) build out .cache
