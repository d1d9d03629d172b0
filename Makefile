# Two commands do everything: `make demo` and `make test`. Both set up .venv first, once.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test lint install browser clean

help:
	@echo "make demo     compare BiGCN with its rivals on a noisy graph and write a report"
	@echo "make test     lint, types and all tests"
	@echo "make browser  install Debian's Chromium for the page tests (needs root)"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "bigcn needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --constraint constraints.txt torch
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable '.[cli,ray,dev]'
	@touch $(STAMP)

demo: $(STAMP)
	$(RUN)/bigcn compare digits --case noise-level --values 0.5,0.8 --models all --seeds 3 --max-epochs 200

lint: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

test: lint
	$(RUN)/python -m pytest -n auto --dist loadgroup

browser:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium chromium-driver; }

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
