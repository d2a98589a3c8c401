# Everything a newcomer or CI types. Needs Python 3.11+, git and make; the rest is installed into .venv.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
args ?=

.PHONY: help demo test check lint types imports bench contract spark format clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo                   two systems that disagree are compared, explained, repaired and proven equal'
	@echo 'make test [args=…]          all tests, on real servers; args go to pytest'
	@echo 'make contract side=NAME     the contract suites of one side or store: sqlite, postgresql, mariadb, memory, …'
	@echo 'make spark [args=…]         installs Spark and the lake libraries (1 GB), and runs the tests that need them'
	@echo 'make check                  everything CI does: test, lint, types, imports'
	@echo 'make format                 formats the code'
	@echo 'make bench [args=…]         prints measured figures'
	@echo 'make clean                  removes what the others made'

# A stamp is as old as the installation; pyproject.toml newer than it means: install again.
$(VENV)/.installed-%: pyproject.toml scripts/install
	@scripts/install $(VENV) $*

demo: $(VENV)/.installed-demo
	@$(BIN)/trueup demo $(args)

test: $(VENV)/.installed-dev
	@$(BIN)/pytest -n 2 --dist loadgroup $(args)

contract: $(VENV)/.installed-dev
	@$(if $(side),,$(error Which side? For example: make contract side=sqlite))
	@$(BIN)/pytest tests/contract -k '$(side)' $(args)

# Needs Java 17. Where these are installed, make test runs tests/spark too.
spark: $(VENV)/.installed-dev $(VENV)/.installed-spark $(VENV)/.installed-lake
	@$(BIN)/pytest tests/spark $(args)

check:
	@.ci/run

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

format: $(VENV)/.installed-dev
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

types: $(VENV)/.installed-dev
	@$(BIN)/mypy

imports: $(VENV)/.installed-dev
	@$(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	@for each in bench/[a-z]*.py; do echo "== $$each"; $(BIN)/python "$$each" $(args) || exit; done
	@for each in bench/*/__main__.py; do each=$$(basename $$(dirname $$each)); echo "== bench.$$each"; \
		PYTHONPATH=. $(BIN)/python -m "bench.$$each" $(args) || exit; done

clean:
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist demo
	@find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
