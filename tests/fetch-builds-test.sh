#!/bin/sh
# Proves that fetch-builds.sh fetches all that is listed and says what is missing. Exit 1 if a case fails.
set -eu

script=$(dirname "$0")/fetch-builds.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
cache=/c

# Stands in for plimsoll: notes how it is called; "gone" never comes.
cat >"$scratch/program" <<'EOF'
#!/bin/sh
echo "$*" >>"$CALLS"
case $* in *gone*) exit 3 ;; *slow*) exec sleep 60 ;; esac
EOF
chmod +x "$scratch/program"
export CALLS="$scratch/calls"

# expect EXIT_CODE OUTPUT CALLS, with the list on stdin
expect() {
    cat >"$scratch/list"
    : >"$CALLS"
    status=0
    output=$(PLIMSOLL_CACHE="$cache" sh "$script" "$scratch/program" "$scratch/list" 2>&1) || status=$?
    calls=$(sed 's/.*build add //' "$CALLS" | sort | tr '\n' ' ')
    case "$status:$calls:$output" in
        "$1:$3:"*"$2"*) ;;
        *)
            echo "fetch-builds: expected exit code $1, \"$2\" and calls \"$3\""
            echo "    got exit code $status, \"$output\" and calls \"$calls\""
            failures=$((failures + 1))
            ;;
    esac
}

expect 0 "" "a@1 b@2 " <<'EOF'
# two of them

a@1
b@2
EOF
expect 0 "not fetched: gone@1 gone@2" "b@2 gone@1 gone@2 " <<'EOF'
gone@1
b@2
gone@2
EOF
expect 0 "" "a@1 " <<'EOF'
a@1
EOF
if [ "$(cat "$CALLS")" != "--cache /c/builds build add a@1" ]; then
    echo "fetch-builds: called as \"$(cat "$CALLS")\""
    failures=$((failures + 1))
fi
# Interrupted, it leaves no file.
mkdir "$scratch/tmp"
: >"$CALLS"
echo slow@1 >"$scratch/list"
TMPDIR="$scratch/tmp" PLIMSOLL_CACHE="$cache" setsid sh "$script" "$scratch/program" "$scratch/list" 2>/dev/null &
fetching=$!
tries=600
until [ -s "$CALLS" ] || [ "$tries" -eq 0 ]; do
    sleep 0.1
    tries=$((tries - 1))
done
kill -s TERM -- "-$fetching"
wait "$fetching" 2>/dev/null || :
if [ ! -s "$CALLS" ] || [ -n "$(ls "$scratch/tmp")" ]; then
    echo "fetch-builds: interrupted, it leaves $(ls "$scratch/tmp")"
    failures=$((failures + 1))
fi
cache=""
expect 2 "usage: " "" <<'EOF'
a@1
EOF

[ "$failures" -eq 0 ]
