# What is done to this repository by hand; continuous integration calls the same targets.

PYTHON ?= python3
BIN := .venv/bin
DEMO := .demo/venv
DATA ?= ../shared/data
PIP := -m pip --disable-pip-version-check -q

.DEFAULT_GOAL := help
.PHONY: help install demo test check bench eval clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

install: .venv/installed ## Make .venv with all that development needs, torch included

demo: $(DEMO)/installed ## Index examples/ with a light install of its own and search it
	@PATH="$(CURDIR)/$(DEMO)/bin:$$PATH" examples/demo.sh

# Side by side, one file at a time and the longest first, unless there is one Qdrant server for all.
test: install ## Run all tests
	@$(BIN)/python -m pytest -q $(if $(REPERTORY_TEST_QDRANT_URL),,-n auto --dist loadfile --no-loadscope-reorder)

check: install ## Lint, check the format, the types and the layers
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: install ## Measure the speed: a table here, the figures in benchmarks/results.json
	@$(BIN)/python -m benchmarks

# Half an hour the first time; what was embedded is kept in .eval.
eval: install ## Measure the ranking on the public data in DATA: benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks.quality "$(DATA)"

clean: ## Remove the environments, the caches and what was built
	@rm -rf .venv .demo .eval dist .coverage .hypothesis .*_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# torch goes first and alone, so that the other requirements cannot pull in a second copy of it.
.venv/installed: pyproject.toml
	@echo "Installing into .venv; the first time takes a few minutes, for torch is large."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) install 'torch==2.13.0'
	@$(BIN)/python $(PIP) install -e '.[dev]'
	@touch $@

$(DEMO)/installed: pyproject.toml
	@echo "Installing into $(DEMO), without torch."
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python $(PIP) install -e '.[offline]'
	@touch $@
