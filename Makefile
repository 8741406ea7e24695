# picoshift. `make help` lists the targets.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: all build test check advisories bench teardown conformance fuzz clean help

BIN := $(CURDIR)/bin

all: build ## Build everything and start the control plane
	@$(BIN)/picoshift up

build: ## Build picoshift and the upstream programs that it starts
	@cargo build --release --locked -p picoshift -p picoshift-apiserver -p picoshift-controllers -p picoshift-shim
	@mkdir -p $(BIN)
	@# By renaming, since the file of a running program cannot be written; only what changed, for a running one to be kept.
	@for program in picoshift picoshift-apiserver picoshift-controllers picoshift-shim; do \
	  cmp -s "target/release/$$program" "$(BIN)/$$program" && continue; \
	  install -m 0755 "target/release/$$program" "$(BIN)/.$$program.new" && \
	  mv -f "$(BIN)/.$$program.new" "$(BIN)/$$program"; \
	done
	@$(BIN)/picoshift build

test: ## Run every check and test, those on a real control plane too
	@hack/test

check: ## Run the checks that need no control plane
	@hack/test check

advisories: ## Look for known vulnerabilities in what we depend on (needs GitHub)
	@hack/cargo-deny check advisories

bench: build ## Measure our Routes and ImageStreams beside the same objects as CRDs
	@cargo build --release -p picoshift-tests --bin bench
	@peers=($$(hack/bench-peers)) && PICOSHIFT_BENCH_HAPROXY=$${peers[0]} PICOSHIFT_BENCH_ENVOY=$${peers[1]} \
	  PICOSHIFT_BIN=$(BIN)/picoshift target/release/bench

differential: build ## Compare our answers with the recorded ones of OpenShift's own servers
	@cargo build --release -p picoshift-tests --bin differential
	@PICOSHIFT_DIRECT_GROUPS=off PICOSHIFT_BIN=$(BIN)/picoshift hack/with-control-plane target/release/differential replay

conformance: ## Run only the Go clients of others and Kubernetes' own tests against a control plane
	@cargo build -p picoshift -p picoshift-apiserver -p picoshift-controllers -p picoshift-shim
	@PICOSHIFT_BIN=$(CURDIR)/target/debug/picoshift hack/with-control-plane hack/end-to-end go kubernetes

fuzz: ## Fuzz what strangers send, FUZZ_SECONDS (60) for each kind of it (needs a C++ compiler)
	@hack/fuzz all $${FUZZ_SECONDS:-60}

teardown: ## End the control plane; data is kept (bin/picoshift down --purge removes it)
	@if [ -x $(BIN)/picoshift ]; then $(BIN)/picoshift down; else echo "bin/picoshift is not built: nothing to end"; fi

clean: ## Remove what was built here, not the cache of upstream programs
	cargo clean
	rm -rf $(BIN)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
