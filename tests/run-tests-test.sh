#!/bin/sh
# Proves that run-tests.sh runs every binary, and notices what it is there for. Prints a line per failed case; exit 1 if there is any.
set -eu

run=$(cd "$(dirname "$0")" && pwd)/run-tests.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
jobs=1

# A cargo that says what `cargo test --no-run` says of two crates with two binaries of tests each and a program. The binaries are
# scripts, which note that they ran and where.
mkdir -p "$scratch/bin" "$scratch/one" "$scratch/two"
cat >"$scratch/bin/cargo" <<'CARGO'
#!/bin/sh
[ -z "${BROKEN:-}" ] || { echo "error: it does not compile" >&2; exit 101; }
say() {
    printf '{"reason":"compiler-artifact","package_id":"p","manifest_path":"%s/Cargo.toml","target":{"kind":["%s"],"crate_types":["bin"],"name":"%s","src_path":"s","edition":"2024","doc":true,"doctest":false,"test":true},"profile":{"opt_level":"0","debuginfo":0,"debug_assertions":true,"overflow_checks":true,"test":%s},"features":[],"filenames":["f"],"executable":%s,"fresh":true}\n' "$@"
}
say "$SCRATCH/one" lib one false null
say "$SCRATCH/one" bin program false "\"$SCRATCH/bin/program\""
say "$SCRATCH/one" lib one true "\"$SCRATCH/bin/one-1\""
say "$SCRATCH/one" test quick true "\"$SCRATCH/bin/quick-2\""
say "$SCRATCH/two" test slow true "\"$SCRATCH/bin/slow-3\""
say "$SCRATCH/two" test gate true "\"$SCRATCH/bin/gate-4\""
echo '{"reason":"build-finished","success":true}'
CARGO
for name in program one-1 quick-2 slow-3 gate-4; do
    cat >"$scratch/bin/$name" <<BINARY
#!/bin/sh
echo "$name in \$(basename "\$PWD")\${1:+ \$*}" >>"\$SCRATCH/ran"
echo "\${TMPDIR:-none}" >"\$SCRATCH/tmpdir"
if [ "$name" = "\${WORKS:-}" ]; then sh -c 'ulimit -t 1; while :; do :; done' || :; fi
[ "$name\${1:-}" != "\${FAILS:-}" ] || { echo "test result: FAILED. 2 passed; 1 failed; 0 ignored"; exit 101; }
echo "test result: ok. 3 passed; 0 failed; 0 ignored"
BINARY
done
chmod +x "$scratch"/bin/*

# expect EXIT_CODE TEXT_IN_OUTPUT RAN [VARIABLE=VALUE...], with the order on stdin. RAN: who ran, in this order, one binary at a time.
expect() {
    code=$1 text=$2 ran=$3
    shift 3
    cat >"$scratch/order"
    : >"$scratch/ran"
    status=0
    env "$@" SCRATCH="$scratch" PATH="$scratch/bin:$PATH" sh "$run" "$jobs" "$scratch/order" --tests >"$scratch/output" 2>&1 || status=$?
    actual=$(paste -sd, "$scratch/ran")
    if [ "$status" -ne "$code" ] || ! grep -qF -e "$text" "$scratch/output" || [ "$actual" != "$ran" ]; then
        echo "run-tests: expected exit code $code, \"$text\" and \"$ran\""
        echo "    got exit code $status, \"$actual\" and: $(cat "$scratch/output")"
        failures=$((failures + 1))
    fi
}

all="slow-3 in two,one-1 in one,quick-2 in one,gate-4 in two"
order='first slow
alone gate'
expect 0 "tests: 12 passed, 0 failed" "$all" <<EOF
# the slow one begins, what measures comes last
$order
EOF
expect 0 "tests: 12 passed, 0 failed" "one-1 in one,quick-2 in one,slow-3 in two,gate-4 in two" <<'EOF'
EOF
# Where the time goes: the slow one works until it has had a CPU for a second, however busy the machine is.
expect 0 "     Ran two: slow-3 in " "$all" WORKS=slow-3 <<EOF
$order
EOF
if ! grep -q "^     Ran two: slow-3 in [1-9][0-9]* s, [1-9][0-9]* s of CPU" "$scratch/output"; then
    echo "run-tests: no CPU time of slow-3: $(grep Ran "$scratch/output")"
    failures=$((failures + 1))
fi
# All run, and who failed is named.
expect 1 "tests: 11 passed, 1 failed" "$all" FAILS=slow-3 <<EOF
$order
EOF
expect 1 "gate-4: exit code 101" "$all" FAILS=gate-4 <<EOF
$order
EOF
# Ignored tests are one more run, in their place, whatever the place of the others.
order_with_ignored='first slow
ignored quick
alone gate'
all_with_ignored="slow-3 in two,quick-2 in one --ignored --nocapture,one-1 in one,quick-2 in one,gate-4 in two"
expect 0 "tests: 15 passed, 0 failed" "$all_with_ignored" <<EOF
$order_with_ignored
EOF
expect 0 "     Ran one: quick-2.ignored in " "$all_with_ignored" <<EOF
$order_with_ignored
EOF
expect 1 "quick-2.ignored: exit code 101" "$all_with_ignored" FAILS=quick-2--ignored <<EOF
$order_with_ignored
EOF
# Make works in the project's folder, which is where the runner was called, while the others run.
cat >"$scratch/bin/make" <<'MAKE'
#!/bin/sh
echo "make $* in $(basename "$PWD"), $(nice)" >>"$SCRATCH/ran"
[ "$1" != "${FAILS:-}" ] || exit 2
MAKE
chmod +x "$scratch/bin/make"
order_with_make="make models
$order"
all_with_make="make models in $(basename "$PWD"), $(nice -n 4 nice),$all"
expect 0 "tests: 12 passed, 0 failed" "$all_with_make" <<EOF
$order_with_make
EOF
expect 1 "make.models: exit code 2" "$all_with_make" FAILS=models <<EOF
$order_with_make
EOF
# Temporary files are in memory if nobody wants them elsewhere and there is room; nothing of it is left.
mkdir "$scratch/shm"
unset TMPDIR
# Limits of containers, in bytes: half a gigabyte; two that are all but full, one of them of cached files; none.
for case in "small 536870912 0 0" "full 2147483648 1610612736 0" "cached 2147483648 1610612736 644245094" "unlimited max 1610612736 0"; do
    # shellcheck disable=SC2086 # the words
    set -- $case
    mkdir "$scratch/$1"
    echo "$2" >"$scratch/$1/memory.max" && echo "$3" >"$scratch/$1/memory.current"
    printf 'anon 5\ninactive_file %s\n' "$4" >"$scratch/$1/memory.stat"
done
for case in "$scratch/shm/t. MEMORY_WANTED=0" "none MEMORY_WANTED=1000000" "none SHM=$scratch/gone" "$scratch/one TMPDIR=$scratch/one" \
    "none CGROUP=$scratch/small" "none CGROUP=$scratch/full" "$scratch/shm/t. CGROUP=$scratch/cached" "$scratch/shm/t. CGROUP=$scratch/unlimited"; do
    expect 0 "tests: 12 passed, 0 failed" "$all" SHM="$scratch/shm" MEMORY_WANTED=1 "${case#* }" <<EOF
$order
EOF
    case $(cat "$scratch/tmpdir") in
        "${case%% *}"*) ;;
        *) echo "run-tests: ${case#* }: temporary files are in $(cat "$scratch/tmpdir")" && failures=$((failures + 1)) ;;
    esac
done
if [ -w /dev/shm ]; then
    expect 0 "temporary files are in /dev/shm/t." "$all" MEMORY_WANTED=0 <<EOF
$order
EOF
fi
[ -z "$(ls "$scratch/shm")" ] || { echo "run-tests: left in memory: $(ls "$scratch/shm")" && failures=$((failures + 1)); }
for place in first ignored; do
    expect 2 "there are no tests of the name gone" "" <<EOF
$place gone
EOF
done
expect 2 "is not \`first NAME\`, \`ignored NAME\`, \`make NAME\` or \`alone NAME\`" "" <<'EOF'
last gate
EOF
for jobs in x 0 -1 1x ""; do
    expect 2 "usage: run-tests.sh" "" <<'EOF'
EOF
done
jobs=1
expect 101 "does not compile" "" BROKEN=1 <<EOF
$order
EOF

[ "$failures" -eq 0 ]
