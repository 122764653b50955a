# deps: what a bare Debian lacks.  test: everything, as CI runs it.  lint: format and clippy.  bench: the load loop's own cost.
.DEFAULT_GOAL := test
.PHONY: deps lint test bench
.NOTPARALLEL:

deps:
	sh tests/install-deps.sh

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Documentation examples first, so that the run closes on the summaries of the tests proper.
test: deps lint
	sh tests/check-skips-test.sh
	cargo test --workspace --locked --doc
	sh tests/check-skips.sh tests/allowed-skips.txt cargo test --workspace --locked --tests --no-fail-fast

bench:
	cargo bench --locked -p plimsoll-load --bench loop
