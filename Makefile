# Two commands for a newcomer: `make quickstart` and `make test`.

# Set it to a directory of your own to keep what was built when the checkout goes.
export CARGO_TARGET_DIR ?= $(CURDIR)/target

BIN := $(CARGO_TARGET_DIR)/release/kvmeter

.DEFAULT_GOAL := help
.PHONY: docs dist test-dist test-long help quickstart mbwu-demo test test-arm test-interleavings test-crashes test-fleet test-dpdk test-lab fuzz fuzz-long build bench install setup setup-quickstart setup-test setup-lab test-bundled

help:
	@echo "make quickstart   install what is missing, build, run the quickstart study"
	@echo "make test         install what the tests need, run every check"
	@echo "make test-arm     unit tests of model, workload and host for Arm, under qemu-user"
	@echo "make test-interleavings   Spill's threads in many orders"
	@echo "make test-crashes Spill's simulated disk: a crash at every system call (takes long)"
	@echo "make test-fleet   studies on several machines, by ssh, Slurm and Kubernetes: hosts that die, jobs that end (minutes)"
	@echo "make test-lab     kvmeter in QEMU guests: other machines, disks that fail, power cuts; CASE=nvme for one"
	@echo "make test-bundled the RocksDB that the feature rocksdb-bundled links in (compiles it first)"
	@echo "make test-dpdk    what the feature dpdk adds, over virtual devices"
	@echo "make build        build $(BIN)"
	@echo "make install      put kvmeter, its manual pages and completions under PREFIX=$(PREFIX)"
	@echo "make test-long    what is exhaustive, of which 'make test' runs a part (hours)"
	@echo "make dist         wheel, tarball, packages and image for x86-64 and 64-bit Arm, into dist/"
	@echo "make test-dist    installs what 'make dist' made, and uses it"
	@echo "make fuzz         the parsers of protocols and files for FUZZ_SECONDS each; fuzz-long: also of studies, results, agents"
	@echo "make docs         the documents as a book, where mdbook is installed"
	@echo "make bench        the harness's own benchmarks"
	@echo "make mbwu-demo    work units of three equal loop devices, with much and with little CPU (root)"

quickstart: setup-quickstart build
	$(BIN) run quickstart

# Three devices that do as much; the same ones with a CPU limit under which they do not come to
# three units of the first; what a unit costs. Results in results/mbwu-demo-*.sqlite; whatever
# happens, nothing else stays.
mbwu-demo: build
	@mkdir -p results && rm -f results/mbwu-demo-*
	scripts/mbwu-rig --devices 3 --iops 300 -- $(BIN) run mbwu --scale demo \
	    --out results/mbwu-demo-free.sqlite
	unit=$$($(BIN) mbwu results/mbwu-demo-free.sqlite --json | sed -n 's/^ *"mbwu_ops_s": \([0-9.]*\),$$/\1/p') && \
	    scripts/mbwu-rig --devices 3 --iops 300 --cpu 3 -- $(BIN) run mbwu --scale demo \
	    --set mbwu.unit=$$unit --set mbwu.rounds=8 --out results/mbwu-demo-limited.sqlite || [ $$? = 1 ]
	@echo "What a unit would cost if this machine were \$$1000 and drew 60 W, and what the poster's embedded one saves:"
	$(BIN) mbwu results/mbwu-demo-free.sqlite --platform name=here,price=1000,watts=60 \
	    --platform mbwu-embedded,mbwus=0.5

build: setup
	cargo build --release --locked --package kvmeter
	@echo "built $(BIN)"

setup:
	@scripts/setup build

setup-quickstart:
	@scripts/setup build quickstart

setup-test:
	@scripts/setup build quickstart test

setup-lab:
	@scripts/setup build lab

# Skips what is not installed, and says so.
test-arm:
	@scripts/test-arm

# One profile for everything.
test: setup-test
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- --deny warnings
	cargo test --release --locked --workspace --no-fail-fast
	$(MAKE) test-interleavings
	@$(MAKE) --no-print-directory test-dpdk
	@$(MAKE) --no-print-directory test-arm
	@scripts/test-lab --quick
	RUSTDOCFLAGS="--deny warnings" cargo doc --release --locked --workspace --no-deps --quiet
	$(MAKE) fuzz FUZZ_SECONDS=5
	@echo "left to 'make test-long': crashes at every system call, all extreme values and failing stores,"
	@echo "the command over DPDK, Spill on 64-bit Arm, long fuzzing, RocksDB linked in, what is installed;"
	@echo "to 'make test-lab': other machines, disks that fail, power cuts"

# Whole, what `make test` runs a part of; and what it leaves out: Spill's threads on 64-bit Arm, the
# long parsers, RocksDB linked in, everything that can be installed.
test-long: setup-test
	KVMETER_TEST_ALL=1 cargo test --release --locked --package kvmeter --test extremes --test cli
	$(MAKE) test-crashes
	! pkg-config --exists 'libdpdk >= 21.11' || \
	    cargo test --release --locked --package kvmeter --features dpdk --test cli -- micro_net
	SPILL_ARM=all scripts/test-arm
	$(MAKE) fuzz-long
	$(MAKE) test-bundled
	$(MAKE) dist test-dist

# Spill's engine under a scheduler that tries orders of its threads.
test-interleavings:
	cargo test --release --locked --package spill --features shuttle --test interleavings

# `make test` has the same tests crash at some of the system calls. `ARGS=crash::crash_with_syncs` picks some.
# Kills of the real process alone: `make test-crashes ARGS=process_kill SPILL_KILLS=500`.
test-crashes:
	SPILL_TEST_EVERY=1 cargo test --release --locked --package spill --test sim -- $(ARGS)

# `make test` runs what is quick of it. One test at a time: each has machines or a cluster of its own.
test-fleet: setup-test
	@scripts/test-kubernetes
	cargo clippy --release --locked --package fleet --package kvmeter --features kubernetes --all-targets -- \
	    --deny warnings
	KVMETER_TEST_ALL=1 cargo test --release --locked --package fleet --features kubernetes
	KVMETER_TEST_ALL=1 cargo test --release --locked --package kvmeter --features kubernetes --test cli -- \
	    fleet:: kubernetes:: slurm:: --test-threads 1

# Machines that the developers' is not. `make test` boots one guest; CASE names one or some.
test-lab: setup-lab build
	@scripts/test-lab $(CASE)

# The feature `dpdk`, which nothing else needs: virtual devices, no card and no huge pages. Skips
# where libdpdk is not installed, and says so.
test-dpdk:
	@if pkg-config --exists 'libdpdk >= 21.11' 2>/dev/null; then \
	    set -ex; \
	    cargo clippy --release --locked --package dpdk --package micro --package kvmeter \
	        --features kvmeter/dpdk --all-targets -- --deny warnings; \
	    cargo test --release --locked --package dpdk --features dpdk/link --lib; \
	    cargo test --release --locked --package micro --features dpdk --test dpdk; \
	else \
	    echo "SKIPPED: DPDK is not tested: libdpdk is not installed (apt-get install libdpdk-dev)"; \
	fi

# Each parser of a protocol or a file for so many seconds; the same invariants run as ordinary
# tests too. The dictionary is of the protocols. What they write lies in memory where there is such a
# folder, and goes at the end.
FUZZ_SECONDS ?= 60
PARSERS := memcached_text memcached_meta memcached_binary resp2 resp3 \
    spill_records spill_pages spill_manifest recordings knob_journal traces histograms
# These are linked with half of kvmeter, which takes minutes to build: `make fuzz-long` alone.
LONG_PARSERS := studies results agent_messages outcomes
CARGO_FUZZ := $(CARGO_TARGET_DIR)/tools/bin/cargo-fuzz
fuzz-long: PARSERS += $(LONG_PARSERS)
fuzz-long: FUZZ_FEATURES := --features studies,results,agents
fuzz fuzz-long: $(CARGO_FUZZ)
	@TMPDIR=$$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d); export TMPDIR; \
	trap 'rm -rf "$$TMPDIR"' EXIT; trap 'exit 130' INT TERM; \
	for parser in $(PARSERS); do \
	    log=$(CARGO_TARGET_DIR)/fuzz/$$parser.log; mkdir -p $(CARGO_TARGET_DIR)/fuzz/$$parser; \
	    case $$parser in mem*|resp*) dict=-dict=fuzz/answers.dict ;; *) dict=-dict=fuzz/files.dict ;; esac; \
	    $(CARGO_FUZZ) run --sanitizer none --fuzz-dir fuzz $(FUZZ_FEATURES) $$parser $(CARGO_TARGET_DIR)/fuzz/$$parser -- \
	        -max_total_time=$(FUZZ_SECONDS) $$dict -print_final_stats=1 >$$log 2>&1 \
	        || { cat $$log; exit 1; }; \
	    echo "fuzzed $$parser: $$(grep number_of_executed $$log)"; \
	done

$(CARGO_FUZZ):
	cargo install cargo-fuzz --locked --version $(CARGO_FUZZ_VERSION) --root $(CARGO_TARGET_DIR)/tools
	mkdir -p $(addprefix $(CARGO_TARGET_DIR)/fuzz/,$(PARSERS))
CARGO_FUZZ_VERSION := 0.13.2

# RocksDB linked in, which `make test` leaves out: it is compiled for half an hour of CPU time.
test-bundled:
	@scripts/setup build bundled
	cargo clippy --release --locked --package store --features rocksdb-bundled --all-targets -- --deny warnings
	cargo test --release --locked --package store --features rocksdb-bundled

bench: setup
	cargo bench --locked --package workload --package drive

# Tests check the documents without it: `cargo test --release --locked --package kvmeter --test docs`.
docs:
	@command -v mdbook >/dev/null || { echo "mdbook is missing; install it with: cargo install mdbook --locked"; exit 1; }
	mdbook build --dest-dir $(CARGO_TARGET_DIR)/book
	@echo "built $(CARGO_TARGET_DIR)/book/index.html"

# For one architecture alone: `scripts/dist x86_64`.
dist:
	@scripts/dist

# What `make dist` made, installed and used.
test-dist:
	@scripts/test-dist

PREFIX ?= $(HOME)/.local
install: build
	install -Dm755 $(BIN) $(PREFIX)/bin/kvmeter
	install -Dm644 include/kvmeter_store.h $(PREFIX)/include/kvmeter_store.h
	$(BIN) man $(PREFIX)/share/man/man1
	mkdir -p $(PREFIX)/share/bash-completion/completions
	$(BIN) completions bash > $(PREFIX)/share/bash-completion/completions/kvmeter
