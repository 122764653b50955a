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

missing=""
while read -r name; do
    case $name in '' | '#'*) continue ;; esac
    "$1" --cache "$PLIMSOLL_CACHE/builds" build add "$name" </dev/null || missing="$missing $name"
done <"$2"

if [ -n "$missing" ]; then
    echo "not fetched:$missing" >&2
    echo "The reasons are above. Tests that need these servers skip themselves, and that fails the run." >&2
fi
