#!/bin/sh
# Fetches the servers that the tests use, with the program's own `build add`:
#     fetch-builds.sh PROGRAM LIST_FILE
# $PLIMSOLL_CACHE names the folder they go to; builds in it are not fetched again. A build that cannot be fetched is reported, but does not fail
# here: the tests that need it skip themselves, and that skip is not allowed.
set -eu

if [ $# -ne 2 ] || [ ! -x "$1" ] || [ ! -r "$2" ] || [ -z "${PLIMSOLL_CACHE:-}" ]; then
    echo "usage: PLIMSOLL_CACHE=DIR fetch-builds.sh PROGRAM LIST_FILE (PROGRAM must be there, and LIST_FILE readable)" >&2
    exit 2
fi
# PostgreSQL's user must be able to enter what root makes.
umask 022

# Two at a time: while one waits for the network another is unpacked or compiled.
missing=$(mktemp)
export missing
trap 'rm -f "$missing"' EXIT
trap 'exit 130' HUP INT TERM
# shellcheck disable=SC2016 # the inner shell expands them
grep -v -e '^#' -e '^$' "$2" | xargs -P 2 -I NAME sh -c \
    '"$1" --cache "$PLIMSOLL_CACHE/builds" build add "$2" </dev/null || echo "$2" >>"$missing"' sh "$1" NAME

if [ -s "$missing" ]; then
    echo "not fetched: $(sort "$missing" | tr '\n' ' ')" >&2
    echo "The reasons are above. Tests that need these servers skip themselves, and that fails the run." >&2
fi
