#!/bin/sh
# Checks the messages of the commits after a revision, as CONTRIBUTING asks for them:
#     check-commits.sh SINCE [CHECKOUT]
# Merges are left out. If git or the history is missing (an archive, a shallow clone) it says so
# and passes. Prints a line per problem. Exit codes: 1 for a problem, 2 for unusable arguments, 0.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: check-commits.sh SINCE [CHECKOUT]" >&2
    exit 2
fi
since=$1
cd "${2:-$(dirname "$0")/..}"
export LC_ALL=C.UTF-8

LONGEST=72
FILES_WITHOUT_BODY=5
# Imperatives that end as other forms do.
IMPERATIVES='Bring|String|Ping|Ring|Embed|Feed|Need|Proceed|Exceed|Succeed|Seed|Shed|Speed|Focus|Bias'

if ! git rev-parse --git-dir >/dev/null 2>&1; then
    echo "commit messages not checked: no git, or no checkout"
    exit 0
fi
if ! git cat-file -e "$since^{commit}" 2>/dev/null; then
    if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        echo "commit messages not checked: this clone is shallow"
        exit 0
    fi
    echo "there is no commit $since; name one that the history has" >&2
    exit 2
fi

problems=$(git rev-list --no-merges "$since..HEAD" | while read -r commit; do
    subject=$(git log -1 --format=%s "$commit")
    first=${subject%% *}
    short=$(git rev-parse --short "$commit")
    problem() { printf '%s: %s: "%s"\n' "$short" "$1" "$subject"; }
    ! printf %s "$subject" | grep -qP "^.{$((LONGEST + 1)),}" ||
        problem "the subject has more than $LONGEST characters"
    printf %s "$subject" | grep -q '^[[:upper:]]' || problem "the subject begins without a capital"
    ! printf %s "$subject" | grep -q '\.$' || problem "the subject ends with a period"
    if printf %s "$first" | grep -qE '(ing|ed|[^s]s)$' &&
        ! printf %s "$first" | grep -qxE "$IMPERATIVES"; then
        problem "the subject does not begin with an imperative"
    fi
    files=$(git diff-tree --no-commit-id --name-only -r -M --root "$commit" | wc -l)
    if [ "$files" -gt "$FILES_WITHOUT_BODY" ] && [ -z "$(git log -1 --format=%b "$commit")" ]; then
        problem "$files files and no body that says why"
    fi
done)
[ -n "$problems" ] || exit 0
printf '%s\n' "$problems"
echo "Reword them (git rebase -i). What is on the trunk already stays: move the revision in the Makefile."
exit 1
