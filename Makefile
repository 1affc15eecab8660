# The one entry point: `make test` is what CI runs, `make check` its fast part, `make demo` shows the collection at work.
# Everything a target lacks is set up by it; the environments live below ~/.cache/nodenet-cni, outside the clone.
# ARGS goes to the tool of a single target: make unit ARGS="-k store", make sanity ARGS="--test pep8".

PYTHON ?= python3
ARGS ?=
RUN = $(PYTHON) tests/tools/run.py

TARGETS = test check lint docs build soak bench venv unit conformance library units-newest mutants clients browser fleet sanity integration \
	molecule importer coverage system import-lines ruff format mypy yamllint ansible-lint changelog docs-lint

.PHONY: help demo cni-bin clean $(TARGETS)

help:
	@echo "make demo         set up a private environment and bootstrap this machine below build/demo"
	@echo "make check        the fast part: linters and unit tests"
	@echo "make test         everything that CI runs"
	@echo "make cni-bin DEST=DIR   make the executables host-local and multus in a directory, without Ansible"
	@echo "make lint docs build bench soak clean"
	@echo "make unit conformance library units-newest mutants clients browser fleet sanity integration molecule importer [ARGS=...]"
	@echo "make venv         print how to enter the environment of the tests"

$(TARGETS):
	@$(RUN) $@ $(ARGS)

demo:
	@$(PYTHON) demo/demo.py $(ARGS)

cni-bin:
	@$(PYTHON) tests/tools/cni_bin.py "$(DEST)"

clean:
	rm -rf build dist .dev .hypothesis .coverage tests/output .ruff_cache .mypy_cache .pytest_cache
