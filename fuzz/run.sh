#!/bin/sh
# Runs each fuzz target, or the ones named, for SECONDS_EACH (60) or RUNS_EACH inputs, whichever comes first, from its corpus, with the
# limits that readers have to keep: 512 MB, 5 s an input. Ends with 1 if one of them finds something; the input is in fuzz/found.
#     fuzz/run.sh [TARGET...]
set -eu

cd "$(dirname "$0")"
: "${SECONDS_EACH:=60}" "${RUNS_EACH:=-1}"
targets=${*:-histogram event_line series plan import rocksdb campaign mysql postgres archive environment proc store}
# What libFuzzer needs of the compiler, without its nightly flags.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
export RUSTFLAGS
target=${CARGO_TARGET_DIR:-../target}/fuzz
cargo build --release --target x86_64-unknown-linux-gnu --target-dir "$target"

mkdir -p found
status=0
for name in $targets; do
    mkdir -p "$target/corpus/$name"
    log="$target/$name.log"
    if "$target/x86_64-unknown-linux-gnu/release/$name" "$target/corpus/$name" "corpus/$name" \
        -max_total_time="$SECONDS_EACH" -runs="$RUNS_EACH" -rss_limit_mb=512 -malloc_limit_mb=256 -timeout=5 -print_final_stats=1 \
        -artifact_prefix="found/$name-" > "$log" 2>&1; then
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
    else
        status=1
        echo "$name: found something; see $log"
        tail -5 "$log"
    fi
done
exit $status
