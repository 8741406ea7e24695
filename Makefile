# `make all` on a fresh machine ends with a running control plane; `make teardown` ends it. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := all

CARGO ?= cargo
PROGRAMS := picoshift picoshift-apiserver

.PHONY: all
all: install ## Build everything, start the control plane, wait until it is ready
	bin/picoshift up

.PHONY: build
build: ## Build our programs
	$(CARGO) build --release --locked $(foreach program,$(PROGRAMS),-p $(program))

# By renaming, since a running program's file cannot be written; and only what changed, since `up` restarts what is new.
.PHONY: install
install: build ## Put our programs into bin/
	@mkdir -p bin
	@for program in $(PROGRAMS); do \
	  if ! cmp -s "target/release/$$program" "bin/$$program"; then \
	    install -m 0755 "target/release/$$program" "bin/.$$program.new"; \
	    mv -f "bin/.$$program.new" "bin/$$program"; \
	  fi; \
	done

.PHONY: control-plane
control-plane: install ## Find or build etcd, Kubernetes and kubectl
	bin/picoshift build

.PHONY: test
test: control-plane ## Run all tests, those against a real control plane too
	$(CARGO) test --workspace --locked

.PHONY: bench
bench: control-plane ## Compare our speed with kube-apiserver's
	$(CARGO) test --release --locked -p picoshift-tests --test bench -- --nocapture

.PHONY: teardown
teardown: ## Stop what `make all` started; data is kept (PURGE=1 removes it)
	@if [ -x bin/picoshift ]; then bin/picoshift down $(if $(PURGE),--purge); else echo "nothing was built here"; fi

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
	  printf '  make %-14s %s\n' "$$name" "$$text"; \
	done
