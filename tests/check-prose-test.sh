#!/bin/sh
# Proves that check-prose.sh finds what it is there for, and nothing else. Prints a line per failed
# case; exit 1 if there is any.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git init -q "$scratch/checkout"
mkdir "$scratch/checkout/crate"
failures=0

# expect EXIT_CODE TEXT_IN_OUTPUT FILE SENTENCE: in a checkout where FILE holds SENTENCE
expect() {
    printf '%s\n' "$4" >"$scratch/checkout/$3"
    status=0
    sh "$here/check-prose.sh" "${phrases:-$here/banned-phrases.txt}" "$scratch/checkout" \
        >"$scratch/output" 2>&1 || status=$?
    rm "$scratch/checkout/$3"
    echo "exit code $status" >>"$scratch/output"
    if ! grep -qx "exit code $1" "$scratch/output" || ! grep -qF -e "$2" "$scratch/output"; then
        echo "check-prose: expected exit code $1 and \"$2\" for: $4"
        echo "    got $(cat "$scratch/output")"
        failures=$((failures + 1))
    fi
}

for sentence in 'The user is told why.' 'That is no error.' '/// Where the step ends, stop.' \
    '// Sleeps for so long.' 'A table of ours.' 'It is measured anew.' 'a contestant' \
    'perhaps for want of memory' 'Whose first operation is slow keeps it.' \
    'It holds each cell against the base.' 'two unsuccessful tries' 'as server given by its address'; do
    expect 1 "crate/a.rs:1:" crate/a.rs "$sentence"
done
for sentence in 'There is no error.' '/// is no error: the line before ends with "there".' 'It is no longer here.' 'So long as it runs, wait.' \
    'Where to add an engine' 'Where is the report, and who reads it?' 'due so long ago' \
    'fn wanted(beside: u8)' 'The verdict tells you why.' 'is said to be'; do
    expect 0 "" crate/a.rs "$sentence"
done
expect 1 "write \"requested\"" a.md 'the wanted rate'
expect 0 "" crate/golden.txt 'The user is told why.'

phrases=$scratch/broken
printf '%s\t%s\n' '(open' 'advice' >"$phrases"
expect 2 "not \`regex TAB advice\`" a.md 'good'
printf '%s\n' 'no advice' >"$phrases"
expect 2 "not \`regex TAB advice\`" a.md 'good'

[ "$failures" -eq 0 ]
