#!/bin/sh
# make-builds.sh FROM OUT: OUT/base and OUT/candidate, two installations of the PostgreSQL in FROM. The candidate's server begins
# with a library that makes each statement take a share more of CPU: PLANT_SHARE, a fifth unless it is set; 0 plants nothing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
from=$1 out=$2
mkdir -p "$out"
for name in base candidate; do
    rm -rf "${out:?}/$name"
    cp -R "$from" "$out/$name"
    rm -f "$out/$name/build.json"
done
[ "${PLANT_SHARE:=0.2}" != 0 ] || exit 0

cc -O2 -shared -fPIC -o "$out/candidate/lib/plant.so" "$here/../../tests/planted/plant.c" -ldl
mv "$out/candidate/bin/postgres" "$out/candidate/bin/postgres-itself"
cat > "$out/wrapper.c" << 'C'
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
	char own[PATH_MAX], path[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
	(void)count;
	if (length < 0)
		return 127;
	own[length] = 0;
	char *bin = dirname(own);
	snprintf(path, sizeof path, "%s/../lib/plant.so", bin);
	setenv("LD_PRELOAD", path, 1);
	setenv("PLANT_SHARE", SHARE, 1);
	snprintf(path, sizeof path, "%s/postgres-itself", bin);
	execv(path, words);
	return 127;
}
C
cc -O2 -DSHARE="\"$PLANT_SHARE\"" -o "$out/candidate/bin/postgres" "$out/wrapper.c"
rm "$out/wrapper.c"
