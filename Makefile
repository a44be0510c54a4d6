PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= sb3,viewer,video,dev
# On Python 3.11 this release is installed first: the newest one can bring gigabytes of GPU libraries with it.
TORCH ?= torch==2.13.0

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all lint bench clean

demo: $(STAMP)
	$(BIN)/sf3d evaluate --agent idm17 --suite ucx-conditions-1 --worlds 8 --out runs/demo
	$(BIN)/sf3d report runs/demo

test: $(STAMP)
	$(BIN)/python -m pytest

test-all: $(STAMP)
	$(BIN)/python -m pytest -m "slow or not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(STAMP)
	$(BIN)/sf3d bench

clean:
	rm -rf $(VENV) runs build dist *.egg-info .pytest_cache .ruff_cache

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then \
	  $(BIN)/python -m pip install --quiet "$(TORCH)" || echo "$(TORCH) is not available here; taking the newest release"; \
	fi
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]"
	touch $@
