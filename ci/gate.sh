#!/bin/sh
# The gate of a pull request: two build folders in, an answer, a comment and an exit code out. Used by action.yml and gitlab.yml;
# its settings are environment variables.
#     PLIMSOLL_BASE, PLIMSOLL_CANDIDATE   folders of installed builds (bin/, lib/, ...), or names such as postgres@18
#     PLIMSOLL_TESTS     sysbench tests, by commas      PLIMSOLL_READS, PLIMSOLL_WRITES   what may be lost (3%, 5%)
#     PLIMSOLL_ROWS      rows of the table (100K)
#     PLIMSOLL_BUDGET    12m                            PLIMSOLL_ACCEPT    file with accepted losses, if it is there
#     PLIMSOLL_UNDECIDED pass (default) or fail: what no decision means for the job
#     PLIMSOLL_LABELS    the request's labels; plimsoll-accept among them accepts all losses
#     PLIMSOLL_BUILDS    folder for builds that are fetched or registered (the user's cache)
# Writes plimsoll-comment.md, plimsoll-gate.xml and the store plimsoll-runs into the current folder.
set -eu

tests=${PLIMSOLL_TESTS:-point-query,hot-points,points-covered-si,range-covered-pk,read-only-count,update-index,update-nonindex,insert}
plan=plimsoll-gate.toml

# plimsoll with the folder for builds.
with_builds() {
    plimsoll "$@" ${PLIMSOLL_BUILDS:+--cache "$PLIMSOLL_BUILDS"}
}

# build FOLDER_OR_NAME LABEL: the build's name in plans.
build() {
    if [ -d "$1" ]; then
        # Not in a pipe, which would end well after a folder without a build.
        added=$(with_builds build add --basedir "$1" --label "$2") || return
        echo "${added%% *}"
    else
        echo "$1"
    fi
}

base=$(build "${PLIMSOLL_BASE:?the folder of the base}" base)
candidate=$(build "${PLIMSOLL_CANDIDATE:?the folder of the candidate}" candidate)
with_builds init --builds "$base,$candidate" --tests "$tests" --rows "${PLIMSOLL_ROWS:-100K}" --out "$plan" --force > /dev/null

accept=""
[ ! -f "${PLIMSOLL_ACCEPT:=.plimsoll-accept}" ] || accept="--accept $PLIMSOLL_ACCEPT"
status=0
# shellcheck disable=SC2086
with_builds gate "$plan" --candidate "$candidate" --max-regression "${PLIMSOLL_READS:-3%}" \
    --threshold "writes=${PLIMSOLL_WRITES:-5%}" --budget "${PLIMSOLL_BUDGET:-12m}" $accept \
    --comment plimsoll-comment.md --junit plimsoll-gate.xml || status=$?

case "$status,${PLIMSOLL_UNDECIDED:-pass},${PLIMSOLL_LABELS:-}" in
1,*,*plimsoll-accept*)
    echo "the label plimsoll-accept accepts the loss"
    exit 0
    ;;
4,pass,*)
    echo "no decision: the comment says what would bring one"
    exit 0
    ;;
esac
exit "$status"
