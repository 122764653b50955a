#!/bin/sh
# Builds of PostgreSQL, base and candidate, through the gate of a pull request. Ends with 0 if the gate finds what was planted.
# POSTGRES is the folder of an installation; without it one is fetched.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
: "${PLIMSOLL_VERSION:=postgres@18.6}" "${PLIMSOLL_TESTS:=point-query,read-only-count,update-index}" "${PLIMSOLL_BUDGET:=3m}"
export PLIMSOLL_TESTS PLIMSOLL_BUDGET
if [ -z "${POSTGRES:-}" ]; then
    plimsoll build add "$PLIMSOLL_VERSION"
    POSTGRES=$(plimsoll build show "$PLIMSOLL_VERSION" --json | sed -n 's|.*"basedir": "\(.*\)",|\1|p')
fi
"$here/make-builds.sh" "$POSTGRES" "$PWD/builds"

status=0
PLIMSOLL_BASE=$PWD/builds/base PLIMSOLL_CANDIDATE=$PWD/builds/candidate "$here/../../ci/gate.sh" || status=$?
[ "$status" = 1 ] || {
    echo "the gate ended with $status; a planted regression has to end it with 1" >&2
    exit 1
}
echo "the gate ended with 1, as it has to"
