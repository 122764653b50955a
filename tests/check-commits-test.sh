#!/bin/sh
# Proves that check-commits.sh notices what it is there for. Prints a line per failed case; exit 1
# if there is any.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check-commits.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
house=$scratch/house

# Neither the user's hooks nor the repository around may have a say.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE 2>/dev/null || true
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
in_house() { git -C "$house" -c user.name=t -c user.email=t@example.invalid "$@"; }

# commit FILES MESSAGE: a commit that touches so many files
commit() {
    for n in $(seq "$1"); do
        echo "$2" >>"$house/$n"
    done
    in_house add -A
    in_house commit -qm "$2"
}

# expect EXIT_CODE TEXT_IN_OUTPUT SINCE CHECKOUT
expect() {
    status=0
    sh "$check" "$3" "$4" >"$scratch/output" 2>&1 || status=$?
    if [ "$status" -ne "$1" ] || { [ "$2" ] && ! grep -qF -e "$2" "$scratch/output"; }; then
        echo "check-commits: expected exit code $1 and \"$2\" since $3"
        echo "    got exit code $status and: $(cat "$scratch/output")"
        failures=$((failures + 1))
    fi
}

# expect_of EXIT_CODE TEXT_IN_OUTPUT FILES MESSAGE: what is said about one commit
expect_of() {
    commit "$3" "$4"
    expect "$1" "$2" HEAD~1 "$house"
}

git init -q "$house"
commit 1 "Begin"
expect_of 0 "" 1 "Bring the parts together"
expect_of 0 "" 1 "Pass"
expect_of 0 "" 6 "Sort the rooms

There were too many."
expect_of 0 "" 5 "Sort the rooms"
expect_of 1 "6 files and no body" 6 "Sort the rooms"
expect_of 1 "more than 72 characters" 1 "Add $(printf 'x%.0s' $(seq 69))"
expect_of 0 "" 1 "Add $(printf 'ü%.0s' $(seq 68))"
expect_of 1 "without a capital" 1 "add a part"
expect_of 1 "ends with a period" 1 "Add a part."
expect_of 1 "with an imperative" 1 "Adding a part"
expect_of 1 "with an imperative" 1 "Added a part"
expect_of 1 "with an imperative" 1 "Adds a part"

# A merge's own message is nobody's to judge.
commit 1 "Pass again"
in_house checkout -q -b side HEAD~1
commit 1 "Add another part"
in_house merge -q -X ours -m "merged." - >/dev/null
expect 0 "" HEAD~1 "$house"
expect 2 "there is no commit" 0123456789012345678901234567890123456789 "$house"
git clone -q --depth 1 "file://$house" "$scratch/shallow"
expect 0 "this clone is shallow" "$(in_house rev-parse HEAD~1)" "$scratch/shallow"
mkdir "$scratch/archive"
GIT_CEILING_DIRECTORIES=$scratch expect 0 "no git, or no checkout" HEAD "$scratch/archive"
status=0
sh "$check" >/dev/null 2>&1 || status=$?
[ "$status" -eq 2 ] || { echo "check-commits: expected exit code 2 without arguments"; failures=1; }

[ "$failures" -eq 0 ]
