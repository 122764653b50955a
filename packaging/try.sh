#!/bin/sh
# Installs a package where nothing else is, and runs the quick plan there:
#     try.sh FILE.deb|FILE.whl
# A .deb goes into a bare Debian root made by debootstrap (for root alone; the root is kept in $PLIMSOLL_CACHE as a tarball), a
# wheel into a fresh virtual environment. Prints the seconds from the installation to the verdicts.
set -eu

package=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
: "${PLIMSOLL_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll}"
suite=bookworm
work=$(mktemp -d)

cleanup() {
    if [ -d "$work/root/proc" ]; then umount "$work/root/proc" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# verdicts FILE: whether it has what the quick plan ends with.
verdicts() {
    grep -q 'Throughput relative to sqlite.wal_full' "$1" && grep -q '^l.i2 .*\(improvement\|inconclusive\)' "$1"
}

case "$package" in
*.whl)
    began=$(date +%s)
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --no-index "$package"
    status=0
    (cd "$work" && ./venv/bin/plimsoll run --data "$work/data" > out 2> err) || status=$?
    ;;
*.deb)
    if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
        line="packaging::a_deb_runs_in_a_bare_debian: a bare root takes root and debootstrap"
        echo "SKIP $line"
        [ -z "${PLIMSOLL_SKIPS:-}" ] || echo "SKIP $line" >> "$PLIMSOLL_SKIPS"
        exit 0
    fi
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v security | head -1)
    tarball="$PLIMSOLL_CACHE/debootstrap-$suite.tar.gz"
    if [ ! -f "$tarball" ]; then
        mkdir -p "$PLIMSOLL_CACHE"
        debootstrap --variant=minbase "$suite" "$work/made" "$mirror" > "$work/log" 2>&1 || { tail -5 "$work/log" >&2; exit 1; }
        tar -C "$work/made" -czf "$tarball.new" . && mv "$tarball.new" "$tarball"
        rm -rf "$work/made"
    fi
    mkdir "$work/root"
    tar -C "$work/root" -xzf "$tarball"
    mount -t proc proc "$work/root/proc"
    cp "$package" "$work/root/plimsoll.deb"
    began=$(date +%s)
    # Everything that it depends on is in the smallest Debian.
    chroot "$work/root" dpkg --install /plimsoll.deb > "$work/log" 2>&1 || { tail -5 "$work/log" >&2; exit 1; }
    status=0
    chroot "$work/root" sh -c 'cd /root && plimsoll run' > "$work/out" 2> "$work/err" || status=$?
    ;;
*)
    echo "try.sh: $1 is neither a .deb nor a .whl" >&2
    exit 2
    ;;
esac
if ! verdicts "$work/out"; then
    echo "try.sh: no verdicts (exit code $status):" >&2
    tail -20 "$work/err" "$work/out" >&2
    exit 1
fi
cat "$work/out"
echo "from the installation to verdicts: $(($(date +%s) - began)) s"
