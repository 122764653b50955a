#!/bin/sh
# Runs the Java side of the .hlog tests: sh tests/hlog-java/run.sh ARGS... (no arguments: usage).
# Builds first when the sources changed, in the cargo target folder, so that the source tree stays clean.
# Two callers at once are safe. Only the tool's own output goes to stdout.
# Exit codes: the tool's (2 = usage); 77 = Java or Maven is not installed, so the caller has to skip.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
case ${CARGO_TARGET_DIR:-} in
/*) build=$CARGO_TARGET_DIR/hlog-java ;;
*) build=$here/../../target/hlog-java ;; # a relative one is relative to a folder we do not know
esac
build_deadline_s=600

for tool in java javac mvn; do
    if ! command -v "$tool" >/dev/null; then
        echo "failed to find $tool: run \`make deps\`" >&2
        exit 77
    fi
done

mkdir -p "$build"
exec 9>"$build/lock"
flock -w "$build_deadline_s" 9 || { echo "failed to lock $build/lock within $build_deadline_s s: end the build that holds it" >&2; exit 1; }
sources=$(cd "$here" && cksum pom.xml src/main/java/plimsoll/*.java)
if [ "$(cat "$build/built-from" 2>/dev/null)" != "$sources" ]; then
    rm -rf "$build/project" "$build/built-from"
    mkdir "$build/project"
    cp -r "$here/pom.xml" "$here/src" "$build/project"
    timeout "$build_deadline_s" mvn --quiet --batch-mode -Dstyle.color=never --file "$build/project/pom.xml" \
        compiler:compile dependency:copy-dependencies -DincludeScope=runtime </dev/null >&2 9>&-
    printf '%s\n' "$sources" >"$build/built-from"
fi
exec 9>&-

exec java -cp "$build/project/target/classes:$build/project/target/dependency/*" plimsoll.HlogTool "$@"
