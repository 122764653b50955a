#!/bin/sh
# Runs a test command, then lists the tests that skipped themselves and fails on one that may not:
#     check-skips.sh ALLOWED_FILE COMMAND...
# A test reports a skip as the line `SKIP name: reason`, appended to the file that $PLIMSOLL_SKIPS names (a runner may swallow what
# a passing test prints). ALLOWED_FILE holds `name: why it is allowed` lines and # comments.
# Exit codes: the command's if it failed, else 1 for a skip that is not allowed, 2 for unusable arguments or lists, 0.
set -eu

if [ $# -lt 2 ] || [ ! -r "$1" ]; then
    echo "usage: check-skips.sh ALLOWED_FILE COMMAND... (the file must be readable)" >&2
    exit 2
fi
allowed=$1
shift

PLIMSOLL_SKIPS=$(mktemp)
export PLIMSOLL_SKIPS
trap 'rm -f "$PLIMSOLL_SKIPS"' EXIT
trap 'exit 130' INT TERM

status=0
"$@" || status=$?

# Names hold `::`, so what ends a name is a colon and a space.
verdict=0
awk -v allowed_file="$allowed" '
    function name_of(text) { return substr(text, 1, index(text, ": ") - 1) }
    function broken(what) { print what " is not `name: reason`: " $0 | "cat 1>&2"; exit_code = 2; exit }
    FILENAME == allowed_file && /^[ \t]*(#|$)/ { next }
    FILENAME == allowed_file && !/^[^ ]+: *[^ ]/ { broken("a line of " allowed_file) }
    FILENAME == allowed_file { is_allowed[name_of($0)] = 1; next }
    !/^SKIP [^ ]+: *[^ ]/ { broken("a reported skip") }
    seen[$0]++ { next }
    { print; if (!(name_of(substr($0, 6)) in is_allowed)) unlisted[++unlisted_count] = name_of(substr($0, 6)) }
    END {
        for (i = 1; i <= unlisted_count; i++)
            print unlisted[i] " skipped itself and is not in " allowed_file ": make it run, or list it there with the reason" | "cat 1>&2"
        if (!exit_code && unlisted_count) exit_code = 1
        exit exit_code
    }
' "$allowed" "$PLIMSOLL_SKIPS" || verdict=$?

[ "$status" -eq 0 ] || exit "$status"
exit "$verdict"
