# `make demo` and `make test` are all a newcomer needs: each sets up what is missing first.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
METIER_VENV ?= .venv
export METIER_VENV
BIN := $(METIER_VENV)/bin
MODEL ?= smollm2-135m

.PHONY: help setup images model demo test lint certify-all
.NOTPARALLEL:

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## apt packages (as root), virtual environment from the lock, Docker engine
	@./bootstrap.sh

images: setup ## every image: base, then each trade's tools, each proven by its smoke test
	@$(BIN)/python -m metier.images build

model: setup
	@$(BIN)/metier models get $(MODEL)

demo: images model ## the main job: a small model learns in real sandboxes (half an hour after set-up on two cores with bf16)
	@$(BIN)/metier demo $(ARGS)

test: images model ## the whole test suite; ARGS="-k name" for a part of it
	@[ "$$(id -u)" != 0 ] || $(BIN)/python -m metier.images build --engine bubblewrap terminal-python
	@$(BIN)/ruff check -q . && cd .typing && $(abspath $(BIN))/lint-imports --no-logo ../pyproject.toml | tail -n 6
	@$(BIN)/python -m pytest $(ARGS)

lint: setup ## ruff, pyright and the layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@command -v node >/dev/null || { echo "pyright needs node, and would fetch one by itself: apt-get install nodejs" >&2; exit 1; }
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
	@cd .typing && $(abspath $(BIN))/lint-imports --no-logo ../pyproject.toml

certify-all: images ## prove every environment's reward again
	@$(BIN)/metier certify $(ARGS)
