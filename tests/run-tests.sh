#!/bin/sh
# Runs the workspace's tests, several binaries at a time: most of them wait for servers and steps, and the slow ones for nobody else.
#     run-tests.sh JOBS ORDER_FILE [CARGO_TEST_OPTION...]
# ORDER_FILE holds `first NAME` for targets that take long and so begin first, `ignored NAME` for targets whose ignored tests run as
# well, in a run of their own that begins in this order, `make NAME` for what make is to do in the meantime, after all others if CPUs
# are short, `alone NAME` for targets that measure, which come last and one by one, and # comments. All other targets come in between. Each binary runs in the folder of its crate, as `cargo test`
# has it; what it says is shown when it has ended, in one piece. All run, whatever fails.
# Unless $TMPDIR names a folder, their temporary files are in memory, in $SHM (/dev/shm), if $MEMORY_WANTED (8) gigabytes are free, in
# a container within its limit (in $CGROUP, /sys/fs/cgroup): ext4 takes long to make a file where many were just deleted, and each
# PostgreSQL makes a thousand.
# Exit codes: 0, 1 if a test failed, 2 for unusable arguments or lists, cargo's if the tests do not compile.
set -eu

# one CRATE_FOLDER BINARY WHICH_TESTS, or one PROJECT_FOLDER MAKE_TARGET make, with $RUN_TESTS_DIR: what xargs calls.
if [ "${1:-}" = one ]; then
    folder=$2 binary=$3 name=${3##*/}
    case $4 in
        ignored) name=$name.ignored && set -- "$binary" --ignored --nocapture ;;
        make) name=make.$name && set -- nice -n 4 env ${TESTS_TMPDIR:+-u TMPDIR} make "$binary" ;;
        *) set -- "$binary" ;;
    esac
    log=$RUN_TESTS_DIR/$name.log
    status=0
    began=$(date +%s)
    (cd "$folder" && exec "$@") >"$log" 2>&1 </dev/null || status=$?
    seconds=$(($(date +%s) - began))
    # Of all that it started and waited for, in minutes and seconds: 1m2.50s 0m3.25s.
    times >"$RUN_TESTS_DIR/$name.cpu"
    cpu=$(awk 'NR == 2 { gsub("s", ""); split($1, user, "m"); split($2, kernel, "m")
        printf "%.0f", 60 * (user[1] + kernel[1]) + user[2] + kernel[2] }' "$RUN_TESTS_DIR/$name.cpu")
    [ "$status" -eq 0 ] || echo "$name: exit code $status" >>"$RUN_TESTS_DIR/failed"
    # shellcheck disable=SC2016 # the inner shell expands them
    flock "$RUN_TESTS_DIR/lock" sh -c 'echo "     Ran ${1##*/}: $2 in $3 s, $4 s of CPU"; cat "$5"' sh "$folder" "$name" "$seconds" "$cpu" "$log"
    exit 0
fi

case ${1:-} in '' | 0* | *[!0-9]*) jobs="" ;; *) jobs=$1 ;; esac
if [ $# -lt 2 ] || [ -z "$jobs" ] || [ ! -r "$2" ]; then
    echo "usage: run-tests.sh JOBS ORDER_FILE [CARGO_TEST_OPTION...] (JOBS at least 1, and the file must be readable)" >&2
    exit 2
fi
order=$2
shift 2

RUN_TESTS_DIR=$(mktemp -d)
TESTS_TMPDIR=""
export RUN_TESTS_DIR TESTS_TMPDIR
# Who still writes there may keep a folder from going at the first try.
trap 'for _ in 1 2 3; do rm -rf "$RUN_TESTS_DIR" ${TESTS_TMPDIR:+"$TESTS_TMPDIR"} 2>/dev/null && break; sleep 1; done || :' EXIT
trap 'exit 130' HUP INT TERM

messages=$RUN_TESTS_DIR/messages
cargo test "$@" --no-run --message-format json-render-diagnostics >"$messages" </dev/null
# One line per binary: target, folder of the crate, file.
sed -n '/"profile":{[^}]*"test":true}/s/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"target":{[^}]*"name":"\([^"]*\)".*"executable":"\([^"]*\)".*/\2\t\1\t\3/p' \
    "$messages" >"$RUN_TESTS_DIR/all"

# Into the files `pool` and `alone`, in the order of the list and then of cargo: three lines for each run, as `one` takes them.
awk -F '\t' -v dir="$RUN_TESTS_DIR" -v order="$order" -v here="$PWD" '
    function broken(what) { print order ": " what | "cat 1>&2"; exit_code = 2; exit }
    FILENAME == order && /^[ \t]*(#|$)/ { next }
    FILENAME == order {
        split($0, word, " ")
        if (word[1] !~ /^(first|ignored|make|alone)$/ || word[2] == "" || word[3] != "") broken("a line is not `first NAME`, `ignored NAME`, `make NAME` or `alone NAME`: " $0)
        listed[++listed_count] = word[2]; how[listed_count] = word[1]
        if (word[1] ~ /^(first|alone)$/) is_placed[word[2]] = 1
        next
    }
    {
        line = $2 "\n" $3 "\n"; of[$1] = of[$1] line "usual\n"; ignored_of[$1] = ignored_of[$1] line "ignored\n"
        if (!($1 in is_placed)) rest = rest line "usual\n"
    }
    END {
        if (exit_code) exit exit_code
        for (i = 1; i <= listed_count; i++) {
            name = listed[i]
            if (how[i] == "make") { printf "%s\n%s\nmake\n", here, name > (dir "/pool"); continue }
            if (!(name in of)) { print order ": there are no tests of the name " name | "cat 1>&2"; exit 2 }
            printf "%s", (how[i] == "ignored" ? ignored_of[name] : of[name]) > (dir "/" (how[i] == "alone" ? "alone" : "pool"))
        }
        printf "%s", rest > (dir "/pool")
    }
' "$order" "$RUN_TESTS_DIR/all"

touch "$RUN_TESTS_DIR/pool" "$RUN_TESTS_DIR/alone" "$RUN_TESTS_DIR/failed"
SHM=${SHM:-/dev/shm}
CGROUP=${CGROUP:-/sys/fs/cgroup}
set --
for file in max current stat; do
    [ ! -r "$CGROUP/memory.$file" ] || set -- "$@" "$CGROUP/memory.$file"
done
# Free gigabytes: the least of what the folder may still hold, all memory, and what a container's limit leaves, but for cached files.
free=$(df -Pk "$SHM" 2>/dev/null | awk '
    NR == 2 { least = $4 }
    FILENAME ~ /max$/ && $1 != "max" { limit = $1 / 1024 }
    FILENAME ~ /current$/ { used = $1 / 1024 }
    FILENAME ~ /stat$/ && $1 == "inactive_file" { used -= $2 / 1024 }
    $1 == "MemAvailable:" && $2 < least { least = $2 }
    END { if (limit && limit - used < least) least = limit - used
        print int(least / 1048576) }' - /proc/meminfo "$@")
if [ -z "${TMPDIR:-}" ] && [ "$free" -ge "${MEMORY_WANTED:-8}" ] && TESTS_TMPDIR=$(mktemp -d "$SHM/t.XXXXXX"); then
    # Servers also read and write past the cache, which old kernels refuse in memory; and tests write programs.
    printf '#!/bin/sh\n' >"$TESTS_TMPDIR/program" && chmod 755 "$TESTS_TMPDIR/program"
    if dd if=/dev/zero of="$TESTS_TMPDIR/direct" bs=4096 count=1 oflag=direct 2>/dev/null && "$TESTS_TMPDIR/program" 2>/dev/null; then
        rm "$TESTS_TMPDIR/direct" "$TESTS_TMPDIR/program"
        # Some servers run as another user.
        chmod 755 "$TESTS_TMPDIR"
        export TMPDIR="$TESTS_TMPDIR"
    else
        rm -r "$TESTS_TMPDIR"
        TESTS_TMPDIR=""
    fi
fi
echo "temporary files are in ${TMPDIR:-/tmp}"

binaries=$(wc -l <"$RUN_TESTS_DIR/all")
runs=$(($(cat "$RUN_TESTS_DIR/pool" "$RUN_TESTS_DIR/alone" | wc -l) / 3))
echo "$binaries binaries of tests, $jobs at a time; until one has ended, what it says is in $RUN_TESTS_DIR"
xargs -d '\n' -r -n 3 -P "$jobs" sh "$0" one <"$RUN_TESTS_DIR/pool"
xargs -d '\n' -r -n 3 -P 1 sh "$0" one <"$RUN_TESTS_DIR/alone"

ended=$(find "$RUN_TESTS_DIR" -name '*.log' | wc -l)
if [ "$binaries" -eq 0 ] || [ "$runs" -lt "$binaries" ] || [ "$ended" -ne "$runs" ]; then
    echo "run-tests: $ended of $runs runs of $binaries binaries ended" >&2
    exit 1
fi
cat "$RUN_TESTS_DIR"/*.log | awk '
    /^test result: / { passed += $4; failed += $6 }
    END { printf "tests: %d passed, %d failed\n", passed, failed }'
if [ -s "$RUN_TESTS_DIR/failed" ]; then
    echo "failed:" >&2
    cat "$RUN_TESTS_DIR/failed" >&2
    exit 1
fi
