#!/bin/sh
# Puts plimsoll-comment.md where people see it: into the job's summary, and on the pull request, in place of the comment of the run
# before. A token that may not comment does not fail the job.
set -eu

comment=plimsoll-comment.md
[ -f "$comment" ] || exit 0
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$comment" >> "$GITHUB_STEP_SUMMARY"
if [ -z "${PULL_REQUEST:-}" ] || ! command -v gh > /dev/null; then exit 0; fi
comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"
before=$(gh api --paginate "$comments" --jq '.[] | select(.body | startswith("<!-- plimsoll gate -->")) | .id' | head -1) || before=""
if [ -n "$before" ]; then
    gh api --silent -X PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$before" -F "body=@$comment" || true
else
    gh api --silent "$comments" -F "body=@$comment" || true
fi
