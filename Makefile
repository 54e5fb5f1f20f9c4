# make demo    set up, start a server, replay recorded traffic through it, show the figures
# make test    set up, run every C++ and Python test
# make test-engines   set up vLLM, transformers and SGLang (5 GB), run real models with drafts from draftd
# make engines set that environment up alone: bench.engines runs in it, too
# make ci      what CI runs: tests, lint, types, sanitizers, the package, the demo, the engines
#
# Everything is installed into .venv and built below build/; nothing outside the checkout is touched.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The interpreter that .venv is made from.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
JOBS := $(shell nproc)

export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
export CTEST_PARALLEL_LEVEL ?= $(JOBS)
export CTEST_NO_TESTS_ACTION := error
# Only errors: pip warns about settings of the machine that are not ours to judge.
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check

# Folders are listed too: a file that went away changes them.
CORE_FILES := CMakeLists.txt $(shell find cpp/include cpp/src cpp/bindings)
CPP_FILES = $(shell find cpp -name '*.h' -o -name '*.cpp')

# Extra words for `draftd demo`, for example DEMO_ARGS=--quick
DEMO_ARGS ?=
# Extra words for pytest, for example PYTEST_ARGS="-k session"
PYTEST_ARGS ?=
# Without servers, loaders of low priority and deadlines: these tests can have every core.
PURE_TESTS := tests/property tests/scenarios
# pytest's status where PYTEST_ARGS choose no test of a part: without them there is one, or something is wrong.
NONE_CHOSEN = $(if $(PYTEST_ARGS),5,0)

.PHONY: help demo test test-cpp test-python engines test-engines lint lint-python lint-cpp lint-imports lint-files types \
	sanitize sanitize-asan sanitize-tsan package fuzz format proto ci clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

# --- set-up: each step leaves a stamp, and is done again only after what it depends on changed ---

$(VENV)/created.stamp: tools/check_system.sh
	@tools/check_system.sh "$(PYTHON)"
	@echo "set-up: creating $(VENV)"
	@"$(PYTHON)" -m venv $(VENV)
	@$(PIP) install pip==26.3
	@touch $@

$(VENV)/build.stamp: $(VENV)/created.stamp pyproject.toml
	@echo "set-up: installing the build tools"
	@$(PIP) install --group build
	@touch $@

$(VENV)/installed.stamp: $(VENV)/build.stamp pyproject.toml $(CORE_FILES)
	@echo "set-up: building the extension and installing draftd with its dependencies"
	@$(PIP) install --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/installed.stamp pyproject.toml
	@echo "set-up: installing the test and lint tools"
	@$(PIP) install --group dev
	@touch $@

# The engines have a virtual environment of their own, with draftd as an engine's host has it.
ENGINES := build/engines/env
ENGINES_PIP := $(ENGINES)/bin/python -m pip -qq --disable-pip-version-check

$(ENGINES)/engines.stamp: $(VENV)/created.stamp tests/engines/requirements.txt
	@echo "set-up: installing vLLM, transformers and SGLang (5 GB)"
	@"$(PYTHON)" -m venv $(ENGINES)
	@$(ENGINES_PIP) install pip==26.3 torch==2.13.0
	@$(ENGINES_PIP) install --no-deps -r tests/engines/requirements.txt
	@touch $@

$(ENGINES)/installed.stamp: $(ENGINES)/engines.stamp pyproject.toml $(CORE_FILES)
	@echo "set-up: building draftd for the engines"
	@$(ENGINES_PIP) install --group build
	@$(ENGINES_PIP) install --no-build-isolation --config-settings=build-dir=build/engines/tree --editable .
	@touch $@

# The vLLM whose default is the asynchronous runner. Its wheel is built for CUDA: what can be imported here is its Python.
VLLM_V2 := build/engines/vllm_v2

$(VLLM_V2)/installed.stamp: $(ENGINES)/engines.stamp tests/engines/vllm_v2/requirements.txt
	@echo "set-up: installing vLLM 0.33 beside the engines (340 MB)"
	@rm -rf $(VLLM_V2)
	@$(ENGINES_PIP) install --no-deps --no-compile --target $(VLLM_V2) -r tests/engines/vllm_v2/requirements.txt
	@find $(VLLM_V2) \( -name '*.so' -o -name vllm-rs \) -delete
	@touch $@

# --- what the README promises ---

demo: $(VENV)/installed.stamp
	@$(BIN)/draftd demo $(DEMO_ARGS)

test: test-cpp test-python

test-cpp: $(VENV)/dev.stamp
	@$(call build_and_ctest,dev)

test-python: $(VENV)/dev.stamp | test-cpp
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PURE_TESTS) $(PYTEST_ARGS) || [ $$? = $(NONE_CHOSEN) ]
	@$(BIN)/python -m pytest $(PURE_TESTS:%=--ignore=%) $(PYTEST_ARGS) || [ $$? = $(NONE_CHOSEN) ]

engines: $(ENGINES)/installed.stamp

test-engines: engines $(VLLM_V2)/installed.stamp
	@$(ENGINES)/bin/python -m pytest tests/engines $(PYTEST_ARGS)

# --- gates ---

lint: lint-python lint-imports lint-files lint-cpp

lint-python: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lint-imports: $(VENV)/dev.stamp
	@$(BIN)/lint-imports --no-logo --no-cache

lint-files: $(VENV)/dev.stamp
	@$(BIN)/shellcheck .ci/run tools/*.sh examples/*.sh
	@$(BIN)/hadolint deploy/Dockerfile

lint-cpp: $(VENV)/dev.stamp
	@$(BIN)/clang-format --dry-run -Werror $(CPP_FILES)
	@$(BIN)/cmake --preset release >/dev/null
	@$(BIN)/run-clang-tidy.py -quiet -p build/release -j $(JOBS) -clang-tidy-binary $(BIN)/clang-tidy

types: $(VENV)/dev.stamp
	@$(BIN)/mypy --strict draftd

sanitize: sanitize-asan sanitize-tsan

sanitize-asan: $(VENV)/dev.stamp
	@$(call build_and_ctest,asan)

# GCC 12's thread sanitizer can't map its shadow where the kernel randomises addresses widely: switch that off if allowed.
sanitize-tsan: $(VENV)/dev.stamp
	@if setarch -R true 2>/dev/null; then plain_addresses="setarch -R"; fi; \
	$(call build_and_ctest,tsan,$${plain_addresses:-})

# `pip install .` alone, in a virtual environment of its own, must give a `draftd` that runs.
package: $(VENV)/created.stamp
	@rm -rf build/package
	@"$(PYTHON)" -m venv build/package
	@build/package/bin/python -m pip install -qq --disable-pip-version-check --config-settings=build-dir=build/package/tree .
	@cd build/package && bin/draftd config >/dev/null && bin/python -c 'from draftd.client import Client, Namespace; from draftd.priors import read_priors; read_priors("shipped")'

# Needs Debian's clang-16 and libclang-rt-16-dev.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)/dev.stamp
	@$(BIN)/cmake --preset fuzz >/dev/null
	@$(BIN)/cmake --build --preset fuzz
	@for target in build/fuzz/cpp/fuzz/fuzz_*; do \
	  if [ -f "$$target" ] && [ -x "$$target" ]; then "$$target" -max_total_time=$(FUZZ_SECONDS); fi; done

ci:
	@.ci/run

# --- things to run by hand ---

format: $(VENV)/dev.stamp
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CPP_FILES)

proto: $(VENV)/dev.stamp
	@$(BIN)/python -m draftd.wire.generate

clean:
	rm -rf build dist $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

# $(1): preset, $(2): a prefix for ctest
define build_and_ctest
$(BIN)/cmake --preset $(1) >/dev/null && \
$(BIN)/cmake --build --preset $(1) && \
$(2) $(BIN)/ctest --preset $(1)
endef
