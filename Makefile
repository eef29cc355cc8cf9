# The commands of this repository:
#   make demo   the packaged sample end to end on this machine
#   make test   lint, types, tests
#   make docs   the site of the documentation, out/docs/site/index.html
#   make fuzz N=1000000 FILES=20000   that many hostile texts and files for every reader
#   make faults  breaks runs on purpose, and prints what was lost: a quarter of an hour
#   make test-host HOST=0.7.3 (or a folder with its sources)   what depends on the host, with another
#   make test-engine   tasks_vllm on a real vLLM engine, on a CPU
#   make lock   the versions of a release, .ci/requirements.lock; LOCK=FILE installs them
#   make dist   the wheel, tried in an empty environment
#   make test-upstream [SOURCE=DIR]   each contribution alone, before and after; SOURCE: also on this source of lmms-eval
# All make the environment first (once; most of it is PyTorch) and reuse it later.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 3
BIN := $(VENV)/bin
LOG := $(VENV)/install.log
# uv takes a third of pip's time; where it is not at hand it comes from the index. What it prints: LOG.
UV := $(or $(shell command -v uv 2>/dev/null),$(BIN)/uv)
# It compiles nothing: the first process that imports a module does, for all after it.
unexport PYTHONDONTWRITEBYTECODE
INSTALL = $(UV) pip install --quiet --python $(BIN)/python
quietly = $(1) >> $(LOG) 2>&1 || { tail -n 20 $(LOG); echo "failed; all of it: $(LOG)"; exit 1; }
# mypy and editors follow the package mapping (utils/ is lmms_eval_tasks.utils) only in strict
# editable mode, which links file by file: repeated when a file comes or goes.
SOURCES := $(shell find lmms_eval_tasks utils judges leaderboards -type f ! -name '*.pyc' | LC_ALL=C sort)
LINKED := $(VENV)/.linked-$(shell echo $(SOURCES) | cksum | cut -d' ' -f1)

.PHONY: demo docs test test-host test-engine test-upstream lint types unit fuzz faults env lock dist clean

demo: env
	@$(BIN)/lmms-eval-tasks demo

docs: env
	@$(BIN)/python docs/build_site.py

# Types are checked by one core, beside the tests' imports.
test: lint
	@$(MAKE) --no-print-directory --jobs 2 types unit

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# From another folder: in this one mypy would take lmms_eval_tasks/ without the mapped utils/ and judges/.
types: env
	cd $(VENV) && bin/mypy --config-file $(CURDIR)/pyproject.toml

# A file's tests stay in one process: many share runs of the host. One worker more than two cores,
# since some tests wait; each needs about 3 GB.
# Seconds by file: out/test_seconds.txt.
unit: env
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 30

# Texts that models and judges write, and files, as nobody would expect them (docs/robustness.md).
N ?= 1000000
FILES ?= 20000
SEED ?= 0
fuzz: env
	$(BIN)/python -m tests.fuzz $(N) $(SEED) $(FILES)

test-host: env
	@VENV=$(VENV) .ci/test-host "$(HOST)"

test-engine: env
	@VENV=$(VENV) .ci/test-engine

test-upstream: env
	$(BIN)/python -m tests.upstream.alone $(SOURCE)
	$(BIN)/pytest tests/upstream

faults: env
	@$(BIN)/python -m tests.faults

env: $(LINKED)

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.11")'
	@echo "[1/3] environment: $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV) || $(call quietly,$(BIN)/pip install --quiet uv)
	@echo "[2/3] packages, about 2 GB: minutes, once"
	@$(call quietly,$(INSTALL) --upgrade "setuptools>=77" wheel)
	@$(call quietly,$(INSTALL) --editable ".[dev]" --config-setting editable_mode=strict $(if $(LOCK),--constraint $(LOCK)))
	@touch $@

$(LINKED): $(VENV)/.installed
	@rm -f $(VENV)/.linked-*
	@echo "[3/3] this package"
	@$(call quietly,$(INSTALL) --no-deps --no-build-isolation --editable . --config-setting editable_mode=strict)
	@touch $@

# For Python 3.10 and all newer ones, on every system.
lock: env
	@$(UV) pip compile --quiet --universal --python-version 3.10 --extra dev --upgrade --no-annotate \
	  --no-emit-package lmms-eval-tasks --custom-compile-command "make lock" pyproject.toml --output-file .ci/requirements.lock

# The wheel and the sources, and the wheel in an empty environment: what a user of the index gets.
dist: env
	@rm -rf dist build/wheel && $(UV) build --quiet --out-dir dist
	@$(UV) venv --quiet build/wheel && $(UV) pip install --quiet --python build/wheel/bin/python dist/*.whl
	@build/wheel/bin/lmms-eval-tasks leaderboard maia > /dev/null && echo "dist: $$(ls dist)"

clean:
	rm -rf $(VENV) build dist out .cache
