#!/bin/sh
# Proves that check-skips.sh notices what it is there for. Prints a line per failed case; exit 1 if there is any.
set -eu

check=$(dirname "$0")/check-skips.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect EXIT_CODE TEXT_IN_OUTPUT TEST_COMMAND, with the list of allowed skips on stdin
expect() {
    cat >"$scratch/allowed"
    status=0
    sh "$check" "$scratch/allowed" sh -c "$3" >"$scratch/output" 2>&1 || status=$?
    if [ "$status" -ne "$1" ] || ! grep -qF -e "$2" "$scratch/output"; then
        echo "check-skips: expected exit code $1 and \"$2\" from: $3"
        echo "    got exit code $status and: $(cat "$scratch/output")"
        failures=$((failures + 1))
    fi
}

# A command that reports a skip the way a test does.
# shellcheck disable=SC2016 # the command expands it
skip() { printf 'echo "SKIP %s" >>"$PLIMSOLL_SKIPS"' "$1"; }

expect 0 "all ran" 'echo "all ran"' <<'EOF'
# nothing is allowed
EOF
expect 0 "SKIP host::counts_cycles: no PMU" "$(skip 'host::counts_cycles: no PMU')" <<'EOF'
host::counts_cycles: virtual machines have no PMU
EOF
expect 1 "host::counts_cycles skipped itself" "$(skip 'host::counts_cycles: no PMU')" <<'EOF'
# host::counts_cycles: a comment allows nothing
EOF
# Neither a longer nor a shorter name is the listed one.
expect 1 "host::counts_cycles skipped itself" "$(skip 'host::counts_cycles: no PMU')" <<'EOF'
host::counts_cycles_twice: another test
host: a prefix
EOF
expect 1 "b skipped itself" "$(skip 'a: x'); $(skip 'b: y')" <<'EOF'
a: only this one
EOF
expect 2 "is not \`name: reason\`" "$(skip 'without_reason')" <<'EOF'
EOF
expect 2 "is not \`name: reason\`" true <<'EOF'
allowed_without_reason
EOF
# The test command's failure comes first, and the skips are shown all the same.
expect 7 "SKIP a: x" "$(skip 'a: x'); exit 7" <<'EOF'
EOF

[ "$failures" -eq 0 ]
