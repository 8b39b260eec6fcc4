# Needs python3 (>= 3.10, with venv), git and make. Everything else goes into .venv: uv, and by it
# the exact set of uv.lock. Nothing outside this folder is changed, except uv's download cache.

PYTHON     ?= python3
VENV       := .venv
BIN        := $(VENV)/bin
UV_VERSION := 0.13.9

# uv installs into our .venv only, from the python that made it, and fetches no other.
export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_PYTHON := $(BIN)/python
export UV_PYTHON_DOWNLOADS := never
unexport VIRTUAL_ENV

# Behind a certificate authority of one's own, uv trusts what the system and pip trust.
SYSTEM_CERTIFICATES := $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem)
ifneq ($(SYSTEM_CERTIFICATES),)
export UV_SYSTEM_CERTS ?= 1
endif
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif

TYPED := $(wildcard src collector_processor semconv checks bench examples tests)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-jaeger example test test-integration test-page test-faults test-engines truth peers engines check format lint types imports rules contract fix semconv bench bench-pipeline bench-engines soak soak-sdk soak-clocks fuzz coverage clean

help: ## this list
	@echo "llmlat-otel: where did the time of this LLM request go?"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make demo ENGINE=emulated    the same with an emulated model server"
	@echo "  make test ARGS='-k clock'    ARGS go to pytest (and to the benchmarks)"

# ── For users ────────────────────────────────────────────────────────────────────────────────────

demo: $(VENV)/.locked-demo ## one compound request on a real model, explained
	@$(BIN)/python examples/adviser/demo.py $(if $(ENGINE),--engine $(ENGINE)) $(ARGS)

demo-jaeger: $(VENV)/.locked-demo peers ## the same into a real Jaeger behind a real Collector, until Ctrl-C
	@$(BIN)/python examples/adviser/demo_jaeger.py $(if $(ENGINE),--engine $(ENGINE)) $(ARGS)

example: $(VENV)/.locked-dev ## one of examples/, explained: NAME=one-import, manual-phases, fastapi-app, gateway-asgi, transformers, vllm
	@$(BIN)/python examples/offline.py $(or $(NAME),one-import) $(ARGS)

# ── For contributors ─────────────────────────────────────────────────────────────────────────────

test: $(VENV)/.locked-dev $(VENV)/.locked-openai-1 ## every test but those of the four stages below
	@$(BIN)/python -m pytest $(ARGS)
	@echo "The page in a browser: make test-page. The processor under faults: make test-faults."
	@echo "A real vLLM: make test-engines."
	@echo "The real Collector and Jaeger: make test-integration."

test-integration: $(VENV)/.locked-dev peers ## through the real Collector and Jaeger
	@$(BIN)/python -m pytest -m peers $(ARGS)

test-page: $(VENV)/.locked-dev ## the page in a real browser: needs Chromium (Debian: chromium)
	@$(BIN)/python -m pytest -m page $(ARGS)

test-faults: $(VENV)/.locked-dev ## the processor under what happens to it: root, faketime
	@$(BIN)/python -m pytest -m faults $(ARGS)

test-engines: $(VENV)/.locked-dev engines ## a real vLLM and a model of Transformers: root
	@$(BIN)/python -m pytest -m engines $(ARGS)

truth: $(VENV)/.locked-dev ## delays and clocks against a known truth: root, iproute2, faketime
	@PYTHONPATH=examples/adviser $(BIN)/python -m tests.truth $(ARGS)

peers: ## build the real Collector and Jaeger, once: Go, minutes; GO=... names a go
	@PYTHONPATH=examples/jaeger $(PYTHON) tests/peers/build.py $(if $(GO),--go '$(GO)')

engines: $(VENV)/.uv-$(UV_VERSION) ## set up vLLM and a tiny model, once: 5 GB, minutes
	@PYTHONPATH=examples/jaeger $(BIN)/python -m tests.engines.build

check: format lint types imports rules contract ## every rule of the repository

format: $(VENV)/.locked-dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.locked-dev
	$(BIN)/ruff check .

types: $(VENV)/.locked-dev
	$(BIN)/python -m mypy $(TYPED)

imports: $(VENV)/.locked-dev
	$(BIN)/lint-imports --no-logo

rules: $(VENV)/.locked-dev
	$(BIN)/python -m checks

contract: $(VENV)/.locked-dev
	$(BIN)/python semconv/check.py
	$(BIN)/python semconv/generate.py --check

fix: $(VENV)/.locked-dev ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

semconv: $(VENV)/.locked-dev ## regenerate code and docs from the contract, then check it
	$(BIN)/python semconv/generate.py
	$(BIN)/python semconv/check.py

bench: $(VENV)/.locked-dev ## the measurements of bench/README.md
	@$(BIN)/python -m bench $(ARGS)

bench-pipeline: $(VENV)/.locked-dev peers ## the processor beside the real Collector: ARGS='--quick'
	@$(BIN)/python -m bench hop $(ARGS)

bench-engines: $(VENV)/.locked-dev engines ## a token of vLLM with us and without: ARGS='--quick'
	@PYTHONPATH=examples/jaeger $(BIN)/python -m bench engines $(ARGS)

soak: $(VENV)/.locked-dev ## the processor, 10 minutes at 10,000 spans/s: ARGS='--minutes 60'
	@$(BIN)/python -m bench.soak_processor $(ARGS)

soak-sdk: $(VENV)/.locked-dev ## 100,000 calls and 10,000 abandoned streams, and nothing grows
	@$(BIN)/python -m bench soak $(ARGS)

fuzz: $(VENV)/.locked-dev ## 1,000,000 damaged requests, and no harm to anybody
	@$(BIN)/python -m tests.fuzz $(ARGS)

soak-clocks: $(VENV)/.locked-dev ## 100,000 random traces, and what is said of their clocks is true
	@$(BIN)/python -m tests.properties.soak_clocks $(ARGS)

coverage: $(VENV)/.locked-dev $(VENV)/.locked-openai-1 ## every test, and the lines that none of them reaches
	@$(BIN)/python -m coverage run -m pytest $(ARGS)
	@$(BIN)/python -m coverage report

clean: ## remove what the tools leave behind (.venv stays)
	rm -rf build dist htmlcov .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# ── The environment ──────────────────────────────────────────────────────────────────────────────
# One stamp for uv, one for each locked set; they are remade when pyproject.toml or uv.lock change.

# --inexact: the demo adds what it needs and leaves a contributor's environment as it is.
$(VENV)/.locked-demo: INEXACT := --inexact
$(VENV)/.locked-%: $(VENV)/.uv-$(UV_VERSION) pyproject.toml uv.lock
	@echo "Installing what '$*' needs into $(VENV) ..."
	@$(BIN)/uv sync --frozen $(INEXACT) --extra $*
	@touch $@

# Another version of a library, beside the locked one: tests run programs of their own with it.
$(VENV)/.locked-openai-1: $(VENV)/.uv-$(UV_VERSION) tests/peers/openai-1.txt
	@echo "Installing openai 1 for the tests into $(VENV)/peers ..."
	@$(BIN)/uv pip sync --quiet --target $(VENV)/peers/openai-1 tests/peers/openai-1.txt
	@touch $@

$(VENV)/.uv-$(UV_VERSION):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "error: '$(PYTHON)' is not a Python >= 3.10. Install one, or name it: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: '$(PYTHON)' has no venv or no ensurepip. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  echo "Making $(VENV) with '$(PYTHON)' ..."; $(PYTHON) -m venv --clear $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'
	@touch $@
