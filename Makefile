# The same commands locally and in CI.
.DEFAULT_GOAL := help
.PHONY: help run install test test-all check check-long docs bench-snapshot bench-store bench-server bench-java bench-chunks bench-hybrid bench-bindings fuzz

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

run: ## Build nuthatch and take a tour of it on real data
	@scripts/run

install: ## Build and install the library, its headers and the command in PREFIX (/usr/local)
	@scripts/install $(PREFIX)

test: ## Run the checks that every change must pass
	@scripts/test

test-all: ## Run the slow checks, after `make test`: budgets, databases, Spark, a soak, clients, fuzzing, sanitizer, loom, book
	@scripts/test slow

check: ## Run the quick checks: format, house rules, lints
	@scripts/test format tidy clippy

check-long: ## Run all checks, the largest sizes, five minutes of chunks, an hour of soak, and fuzz each target for FUZZ_SECONDS (300)
	@scripts/test
	@scripts/test slow
	@bench/large
	@cargo test --locked --quiet -p nuthatch-chunks --test resilience -- 300
	@cargo build --locked --quiet --release -p nuthatch-cli -p nuthatch-bench-command
	@$${CARGO_TARGET_DIR:-target}/release/nuthatch-bench soak --seconds 3600 --kills 20
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-300} scripts/fuzz

docs: ## Build the book of docs/ with mdBook, in target/book
	@scripts/book

bench-snapshot: ## Compare the snapshot engine with other systems; ARGS are passed on
	@cargo run --locked --release --manifest-path bench/rivals/Cargo.toml -- $(ARGS)

bench-store: ## Compare the ordered store with other systems; ARGS are passed on
	@scripts/packages librocksdb-dev
	@cargo run --locked --release --manifest-path bench/rivals/Cargo.toml --features rocksdb -- \
		store $(ARGS)

bench-server: ## Compare the cache server with other servers; ARGS are passed on
	@cargo build --locked --release -p nuthatch-cli
	@cargo run --locked --release -p nuthatch-load --bin race -- \
		--nuthatch $${CARGO_TARGET_DIR:-target}/release/nuthatch $(ARGS)

bench-java: ## Compare scans from Java with lmdbjava; ARGS are passed on to JMH
	@scripts/java bench $(ARGS)

bench-chunks: ## Compare the chunk cache with other caches; ARGS are passed on
	@scripts/packages postgresql
	@cargo run --locked --release --manifest-path bench/chunks/Cargo.toml --features rivals -- $(ARGS)

bench-hybrid: ## Compare the cache with a disk tier with foyer and RocksDB; ARGS are passed on
	@scripts/packages librocksdb-dev
	@cargo run --locked --release --manifest-path bench/hybrid/Cargo.toml --features rocksdb -- \
		$(ARGS)

bench-bindings: ## Compare snapshots in each language with its maps and others; ARGS are languages
	@scripts/bench_bindings $(ARGS)

fuzz: ## Fuzz TARGET, or every target, for FUZZ_SECONDS (default 60) each
	@scripts/fuzz $(TARGET)
