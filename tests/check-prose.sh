#!/bin/sh
# Finds phrases that read as translated, in documentation, comments, messages and help texts:
#     check-prose.sh PHRASES [CHECKOUT]
# PHRASES holds `regex TAB advice` lines; a third column `docs` limits one to Markdown.
# Prints `file:line:text` of each hit under its advice. Exit codes: 1 for a hit, 2 for unusable arguments or lists, 0.
set -eu

if [ ! -r "${1:-}" ]; then
    echo "usage: check-prose.sh PHRASES [CHECKOUT] (the list must be readable)" >&2
    exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
phrases=$1
grep -v '^#' "$1" >"$scratch/phrases" || true
cd "${2:-$(dirname "$0")/..}"

# The changelog's old entries are history; golden files follow the code; these lists name what
# they ban.
git ls-files --cached --others --exclude-standard -- '*.md' '*.rs' '*.toml' '*.sh' Makefile configs |
    grep -Ev -e '^CHANGELOG.md$' -e '/golden/' -e '^tests/check-prose' >"$scratch/files" || true
grep '\.md$' "$scratch/files" >"$scratch/docs" || true

found=0
tab=$(printf '\t')
while IFS=$tab read -r regex advice scope; do
    is_valid=0
    echo | grep -qP -e "$regex" 2>/dev/null || is_valid=$?
    if [ "$is_valid" -eq 2 ] || [ -z "$advice" ]; then
        printf '%s: not `regex TAB advice`: %s\n' "$phrases" "$regex" >&2
        exit 2
    fi
    tr '\n' '\0' <"$scratch/${scope:-files}" |
        xargs -0 -r grep -sHnP -e "$regex" -- >"$scratch/hits" || true
    [ -s "$scratch/hits" ] || continue
    printf 'write "%s" instead of /%s/:\n' "$advice" "$regex"
    sed 's/^/    /' "$scratch/hits"
    found=1
done <"$scratch/phrases"
exit "$found"
