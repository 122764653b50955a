# deps: what a bare Debian lacks.  servers: the database servers that the tests use.  test: everything, as CI runs it.
# lint: format, clippy, banned phrases and commit messages; style: the same without clippy.  bench: the load loop's own cost.  bench-peers: a query's cost beside sysbench, pgbench and a raw loop in C.
# faults: kills, failing system calls and broken connections at random, FAULTS of each; PLIMSOLL_FAULTS_SEED repeats one run of it.
# planted: whether the tests find bugs that are planted for them.  models: thousands of orders in which threads may meet.
# truth: intervals against servers whose statements take a time that is known, TRUTH campaigns of 12 questions each.
# bench-db-bench: a point read's cost beside db_bench.  fuzz: each fuzz target for FUZZ_SECONDS.
.DEFAULT_GOAL := test
# docs: the book, into target/book.
# error-rates: how often verdicts are wrong, counted on real servers: ENGINE=postgres KIND=aa N=20 OPTIONS='--budget 4m'.
.PHONY: dist packages deb deps servers client-cost docs lint clippy style test faults planted models truth fuzz bench bench-peers bench-db-bench error-rates
.NOTPARALLEL:

# CPU per point read of our driver and of db_bench on the same library, medians over five blocks.
bench-db-bench:
	cargo run --release -p plimsoll -- run crates/lab/examples/db-bench-cost.toml --store target/db-bench-cost
	cargo run --release -p plimsoll -- show --store target/db-bench-cost

# Where the tests find real servers. Under root PostgreSQL runs as nobody, who may not enter root's home.
root_cache = $(shell [ "$$(id -u)" -eq 0 ] && echo /var/cache)
override PLIMSOLL_CACHE := $(abspath $(or $(PLIMSOLL_CACHE),$(or $(root_cache),$(XDG_CACHE_HOME),$(HOME)/.cache)/plimsoll))
export PLIMSOLL_CACHE

ENGINE ?= postgres
KIND ?= aa
N ?= 20
OPTIONS ?= --budget 4m
error-rates:
	cargo build --release -p plimsoll
	cargo run --release -p plimsoll --example error_rates -- target/release/plimsoll $(ENGINE) $(KIND) $(N) $(OPTIONS)

# Some two minutes each, on a machine that does nothing else.
TRUTH ?= 34
truth:
	$(MAKE) error-rates KIND=truth N=$(TRUTH) OPTIONS='--starts 4 --time 12s'

deps:
	sh tests/install-deps.sh

# The book in target/book, to be opened from a file: it has its own search and fonts. Links, anchors and the lengths of
# pages are checked by `cargo test`, in crates/cli/tests/book.rs.
mdbook_version := 0.5.4
mdbook := $(PLIMSOLL_CACHE)/mdbook-$(mdbook_version)/bin/mdbook
$(mdbook):
	cargo install mdbook --version $(mdbook_version) --locked --no-default-features --features search --root $(PLIMSOLL_CACHE)/mdbook-$(mdbook_version)
docs: $(mdbook)
	$(mdbook) build docs

# Messages of later commits are checked.
commits_since := 3f9047267c8aeaa01c3f600fe8e990093cd1745f
lint: style clippy
clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings
style:
	cargo fmt --all --check
	sh tests/check-prose-test.sh
	sh tests/check-prose.sh tests/banned-phrases.txt
	sh tests/check-commits-test.sh
	sh tests/check-commits.sh $(commits_since)

# Compiles the tests first: the program comes with them. Without a network nothing is fetched, and the tests say what they miss.
servers:
	cargo test --workspace --locked --tests --no-run
	sh tests/fetch-builds.sh "$${CARGO_TARGET_DIR:-target}/debug/plimsoll" tests/builds.txt

# The program whose instructions per operation the tests count, optimised as a release is where queries pass: not in parts, as
# incremental builds are.
client_cost := $(abspath $(or $(CARGO_TARGET_DIR),target))/client-cost/plimsoll-client-cost
client-cost:
	CARGO_INCREMENTAL=0 cargo build --profile client-cost --locked -p plimsoll-client-cost

# The program as it is installed: target/dist/bin/plimsoll, and plimsoll.debug alongside it, from which backtraces take their
# lines. Without that file they have names alone.
dist_dir := $(abspath $(or $(CARGO_TARGET_DIR),target))/dist
dist:
	cargo build --profile dist --locked -p plimsoll
	mkdir -p $(dist_dir)/bin
	objcopy --only-keep-debug $(dist_dir)/plimsoll $(dist_dir)/bin/plimsoll.debug
	cd $(dist_dir)/bin && objcopy --strip-debug --add-gnu-debuglink=plimsoll.debug ../plimsoll plimsoll

# What is released, in target/packages. deb: the Debian package alone, of the ordinary release build.
packages:
	sh packaging/build.sh all
deb:
	sh packaging/build.sh deb

# Most tests wait for servers and steps, not for a CPU: so many binaries run at a time, and so many tests of each.
TEST_JOBS ?= 3
RUST_TEST_THREADS ?= $(shell expr "$$(nproc)" + 1)
test: export RUST_TEST_THREADS := $(RUST_TEST_THREADS)
test: export PLIMSOLL_CLIENT_COST := $(client_cost)
# `make test` runs clippy next to the tests, see tests/test-order.txt.
# What happens seldom happens often, as this seed chooses: see crates/core/src/buggify.rs.
test: export PLIMSOLL_BUGGIFY := $(or $(PLIMSOLL_BUGGIFY),$(shell date +%s))
test: deps style servers
	@echo PLIMSOLL_BUGGIFY=$(PLIMSOLL_BUGGIFY)
	sh tests/check-skips-test.sh
	sh tests/fetch-builds-test.sh
	sh tests/run-tests-test.sh
	sh tests/check-skips.sh tests/allowed-skips.txt sh tests/run-tests.sh $(TEST_JOBS) tests/test-order.txt --workspace --locked --tests

# Each row ends with a line of what it has cost. A kill takes some 4 s, a failing call 2, a broken connection 5 to 60.
FAULTS ?= 200
faults: servers
	PLIMSOLL_FAULTS=$(FAULTS) cargo test --locked -p plimsoll --test cli -- --nocapture --test-threads 1 faults::nothing_is_left_after_faults_at_random syscalls:: cut_off::

# The bugs are in the binaries that `servers` has compiled. `make test` runs this beside the other tests.
planted: servers
	cargo test --workspace --locked --test planted -- --ignored --nocapture

# `make test` runs this among the other tests.
models:
	cargo test --workspace --locked --test models

bench:
	cargo bench --locked -p plimsoll-load --bench loop

# Minutes; a machine with nothing else to do gives figures that mean something. PEERS: on which of the tests' builds.
PEERS ?= mariadb@10.11 postgres@18
bench-peers: deps servers
	cargo run --release --locked -p plimsoll-client-cost -- peers $(PEERS)

# Each fuzz target for so many seconds; needs no nightly compiler.
FUZZ_SECONDS ?= 60
fuzz:
	SECONDS_EACH=$(FUZZ_SECONDS) fuzz/run.sh
