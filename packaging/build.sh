#!/bin/sh
# Builds what is released, into FOLDER (default: target/packages):
#     build.sh [deb|all] [FOLDER]
# deb: the Debian package alone, of $PLIMSOLL_BINARY or the ordinary release build; minutes. all: it and the wheel for systems with
# glibc 2.17 and newer, static binaries for x86-64 and aarch64, completions and man pages, an SBOM, and checksums. Cross compilers
# come from the Python package ziglang, the wheel is made by maturin; both are put into $PLIMSOLL_CACHE.
# $DEB_OPTIONS: more options for dpkg-deb, such as `-Zgzip -z1`, which is quick; what is released has none.
set -eu

what=${1:-all}
cd "$(dirname "$0")/.."
out=${2:-target/packages}
target=${CARGO_TARGET_DIR:-target}
: "${PLIMSOLL_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll}"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
mkdir -p "$out"
out=$(cd "$out" && pwd)

say() { echo "packaging: $*" >&2; }

# assets BINARY FOLDER: man pages and completions.
assets() {
    mkdir -p "$2/man" "$2/completions"
    "$1" manual "$2/man"
    "$1" completions bash > "$2/completions/plimsoll.bash"
    "$1" completions zsh > "$2/completions/_plimsoll"
    "$1" completions fish > "$2/completions/plimsoll.fish"
}

# deb BINARY LIBC: the Debian package, with the binary as it is.
deb() {
    tree=$(mktemp -d)
    chmod 755 "$tree"
    install -D -m 755 "$1" "$tree/usr/bin/plimsoll"
    strip --strip-debug "$tree/usr/bin/plimsoll"
    assets "$1" "$tree/assets"
    mkdir -p "$tree/usr/share/man/man1" "$tree/usr/share/zsh/vendor-completions"
    for page in "$tree"/assets/man/*.1; do
        gzip -9 -n -c "$page" > "$tree/usr/share/man/man1/$(basename "$page").gz"
    done
    install -D -m 644 "$tree/assets/completions/plimsoll.bash" "$tree/usr/share/bash-completion/completions/plimsoll"
    install -D -m 644 "$tree/assets/completions/_plimsoll" "$tree/usr/share/zsh/vendor-completions/_plimsoll"
    install -D -m 644 "$tree/assets/completions/plimsoll.fish" "$tree/usr/share/fish/vendor_completions.d/plimsoll.fish"
    install -D -m 644 LICENSE "$tree/usr/share/doc/plimsoll/copyright"
    install -D -m 644 crates/report/assets/dejavu/LICENSE "$tree/usr/share/doc/plimsoll/copyright.dejavu"
    gzip -9 -n -c CHANGELOG.md > "$tree/usr/share/doc/plimsoll/changelog.gz"
    chmod 644 "$tree/usr/share/doc/plimsoll/changelog.gz"
    rm -r "$tree/assets"
    mkdir "$tree/DEBIAN"
    cat > "$tree/DEBIAN/control" <<CONTROL
Package: plimsoll
Version: $version
Section: database
Priority: optional
Architecture: amd64
Maintainer: Plimsoll <plimsoll@localhost>
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Depends: libc6 (>= $2), libgcc-s1
Suggests: maven, npm
Description: finds performance regressions in databases
 Loads builds of MySQL, MariaDB, PostgreSQL, RocksDB and SQLite with the
 Insert Benchmark, the sysbench microbenchmarks and the db_bench sequence,
 and says what got slower, by how much, how sure that is, and why.
CONTROL
    # shellcheck disable=SC2086 # options are words
    dpkg-deb ${DEB_OPTIONS:-} --build --root-owner-group "$tree" "$out/plimsoll_${version}_amd64.deb" >&2
    rm -r "$tree"
}

# needed_libc BINARY: the newest version of glibc that it asks for.
needed_libc() {
    objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | sed 's/GLIBC_//'
}

if [ "$what" = deb ]; then
    binary=${PLIMSOLL_BINARY:-}
    if [ -z "$binary" ]; then
        cargo build --release --locked -p plimsoll
        binary="$target/release/plimsoll"
    fi
    deb "$binary" "$(needed_libc "$binary")"
    say "$out/plimsoll_${version}_amd64.deb"
    exit 0
fi

tools="$PLIMSOLL_CACHE/packaging-tools"
if [ ! -x "$tools/bin/maturin" ]; then
    say "fetching maturin, cargo-zigbuild and ziglang into $tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet 'maturin>=1.9,<2' 'cargo-zigbuild>=0.20,<1' 'ziglang>=0.15,<1'
fi
PATH="$tools/bin:$PATH"
rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl

say "for glibc 2.17 and newer"
gnu=x86_64-unknown-linux-gnu
cargo zigbuild --profile dist --locked -p plimsoll --target "$gnu.2.17"
deb "$target/$gnu/dist/plimsoll" "$(needed_libc "$target/$gnu/dist/plimsoll")"
maturin build --profile dist --locked --zig --target "$gnu" --compatibility manylinux2014 --out "$out"

for arch in x86_64 aarch64; do
    say "static, $arch"
    cargo zigbuild --profile dist --locked -p plimsoll --target "$arch-unknown-linux-musl"
    folder="plimsoll-$version-$arch-linux-static"
    tree=$(mktemp -d)
    mkdir "$tree/$folder"
    cp "$target/$arch-unknown-linux-musl/dist/plimsoll" README.md CHANGELOG.md LICENSE LICENSE-APACHE LICENSE-MIT "$tree/$folder/"
    cp crates/report/assets/dejavu/LICENSE "$tree/$folder/LICENSE-DejaVu"
    "$tools/bin/python" -m ziglang objcopy --strip-debug "$tree/$folder/plimsoll" "$tree/$folder/stripped" 2>/dev/null &&
        mv "$tree/$folder/stripped" "$tree/$folder/plimsoll"
    chmod 755 "$tree/$folder/plimsoll"
    assets "$target/$gnu/dist/plimsoll" "$tree/$folder"
    tar -C "$tree" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -czf "$out/$folder.tar.gz" "$folder"
    rm -r "$tree"
done

say "the SBOM"
command -v cargo-cyclonedx >/dev/null 2>&1 || cargo install --quiet cargo-cyclonedx --locked --root "$tools"
cargo cyclonedx --manifest-path crates/cli/Cargo.toml --format json --override-filename plimsoll-sbom
mv crates/cli/plimsoll-sbom.json "$out/plimsoll-$version-sbom.json"
find crates -name 'plimsoll-sbom.json' -delete

cd "$out"
sha256sum -- *.deb *.whl *.tar.gz *.json > SHA256SUMS
cat SHA256SUMS
