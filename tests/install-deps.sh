#!/bin/sh
# Installs what a bare Debian lacks for building and testing, through apt and rustup. Asks nothing; when nothing is missing it does
# nothing. Without the right to install, or without apt, it says what is missing and goes on: the tests that need it will say so.
set -eu

PATH=$PATH:/usr/sbin
has() { command -v "$1" >/dev/null 2>&1; }

packages=""
# need COMMAND PACKAGE...
need() {
    command=$1
    shift
    has "$command" || packages="$packages $*"
}

need cc gcc libc6-dev             # the bundled SQLite is compiled
need c++ g++                      # recipes of builds from source
need cmake cmake                  # the same
need bison bison                  # the same
need flex flex                    # the same
need ld.lld lld                   # the same, where a build is linked several times
need javac default-jdk-headless   # the reference reader of .hlog files
need mvn maven
need valgrind valgrind            # counts instructions where no hardware counter does
need chromium chromium            # looks at the report as a reader would
need strace strace               # makes system calls fail
need sysbench sysbench            # the original that our load is compared with
need ip iproute2                  # namespaces that stand for hosts
need sshd openssh-server          # hosts that are reached by ssh
need slurmctld slurmctld slurmd slurm-client munge   # a scheduler of two nodes
need debootstrap debootstrap      # a bare Debian, to install our package into
if ! has npm; then
    # Debian's npm would bring its own Node.js in place of one that came from elsewhere.
    if has node; then
        echo "npm is missing beside $(command -v node): install the npm that belongs to it" >&2
    else
        packages="$packages npm"
    fi
fi

# may_use_sudo: is there a sudo that needs no password, or someone to type it?
may_use_sudo() { has sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get --yes --quiet --option DPkg::Lock::Timeout=300 "$@" </dev/null
}

if [ -n "$packages" ]; then
    if has apt-get && { [ "$(id -u)" -eq 0 ] || may_use_sudo; }; then
        echo "installing$packages"
        apt update
        # Tests start servers of their own: none of the packages' services is started, now or at the next boot.
        policy=/usr/sbin/policy-rc.d
        if [ -e $policy ]; then policy=""; else
            trap 'as_root rm -f "$policy"' EXIT
            trap 'exit 130' HUP INT TERM
            printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
            as_root chmod 755 $policy
        fi
        # shellcheck disable=SC2086 # one word per package
        apt install --no-install-recommends $packages
        [ -z "$policy" ] || { as_root rm -f "$policy"; trap - EXIT; }
        if has systemctl; then
            for service in "openssh-server ssh" "slurmctld slurmctld" "slurmd slurmd" "munge munge"; do
                case " $packages " in *" ${service% *} "*) as_root systemctl disable "${service#* }" || : ;; esac
            done
        fi
    else
        echo "cannot install packages here; missing:$packages" >&2
    fi
fi

components=""
cargo fmt --version >/dev/null 2>&1 || components="$components rustfmt"
cargo clippy --version >/dev/null 2>&1 || components="$components clippy"
if [ -n "$components" ]; then
    if has rustup; then
        # shellcheck disable=SC2086 # one word per component
        rustup component add $components
    else
        echo "cannot install Rust components without rustup; missing:$components" >&2
    fi
fi
