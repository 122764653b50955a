#!/bin/sh
# What sysbench, pgbench and plimsoll report of one fault in the middle of a run: docs/reliability-counts.md has it as a table. Needs
# root, sysbench, pgbench, psql and setsid, a plimsoll, and the builds that tests/builds.txt names in a cache. Servers are its own, on
# sockets in a folder of their own, and end with it.
#     tests/peers-under-faults.sh PLIMSOLL CACHE
set -eu

plimsoll=$(realpath "$1")
builds=$(realpath "$2")/builds
postgres=$(ls -d "$builds"/postgres@18.* | grep -v + | tail -1)
mariadb=$(ls -d "$builds"/mariadb@10.11.* | tail -1)
dir=$(mktemp -d)
chmod 755 "$dir"
server=
tool=

# Ten seconds for a process to end. One that waits for its parent has ended.
until_over() {
    tries=100
    while [ -e "/proc/$1/stat" ] && ! grep -q ') Z ' "/proc/$1/stat" && [ $tries -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.1
    done
}
# Not by SIGKILL first: PostgreSQL would leave its shared memory.
stop_server() {
    [ -n "$server" ] || return 0
    kill -QUIT "$server" 2>/dev/null || true
    until_over "$server"
    kill -9 "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}
# The tool and what it runs: they are in the background, where Ctrl-C does not reach them.
stop_tool() {
    [ -n "$tool" ] || return 0
    of_tool=$(pgrep -P "$tool") || true
    # shellcheck disable=SC2086 # several processes
    kill -TERM "$tool" $of_tool 2>/dev/null || true
    wait "$tool" 2>/dev/null || true
    for process in $of_tool; do
        until_over "$process"
        kill -9 "$process" 2>/dev/null || true
    done
    tool=
}
trap 'trap "" HUP INT TERM; stop_tool; stop_server; rm -rf "$dir"' EXIT
trap 'exit 130' HUP INT TERM

# until_true WHAT COMMAND...: at most a minute.
until_true() {
    what=$1
    shift
    tries=600
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "no $what after a minute" >&2; exit 1; }
        sleep 0.1
    done
}

as_nobody() { setpriv --reuid=nobody --clear-groups "$@"; }
pg() { psql -qAt -h "$dir/pg" -U postgres -d "$1" -c "$2"; }
my() { "$mariadb/usr/bin/mariadb" -N --socket="$dir/my.sock" --delimiter=// -u root -e "$1"; }

start_postgres() {
    stop_server
    rm -rf "$dir/pg"
    mkdir "$dir/pg"
    chown nobody "$dir/pg"
    as_nobody "$postgres/bin/initdb" -D "$dir/pg/data" -U postgres -A trust >/dev/null
    # Not by a function: in the background that is a shell with the server below it.
    setpriv --reuid=nobody --clear-groups "$postgres/bin/postgres" -D "$dir/pg/data" -k "$dir/pg" -c listen_addresses= -c fsync=off >"$dir/pg.log" 2>&1 &
    server=$!
    until_true PostgreSQL pg postgres "select 1"
    pg postgres "create database bench"
    pg postgres "create database ours"
}

start_mariadb() {
    stop_server
    rm -rf "$dir/my"
    "$mariadb/usr/bin/mariadb-install-db" --no-defaults --datadir="$dir/my" --basedir="$mariadb/usr" --user=root \
        --auth-root-authentication-method=normal >/dev/null 2>&1
    "$mariadb/usr/sbin/mariadbd" --no-defaults --datadir="$dir/my" --basedir="$mariadb/usr" --user=root --socket="$dir/my.sock" \
        --skip-networking --innodb-flush-log-at-trx-commit=0 >"$dir/my.log" 2>&1 &
    server=$!
    until_true MariaDB my "select 1"
    my "create database bench // create database ours"
}

sysbench_pg() {
    sysbench oltp_insert --db-driver=pgsql --pgsql-host="$dir/pg" --pgsql-user=postgres --pgsql-db=bench --tables=1 \
        --table-size=1000 --threads=4 --time=6 "$@"
}
sysbench_my() {
    sysbench oltp_insert --db-driver=mysql --mysql-socket="$dir/my.sock" --mysql-user=root --mysql-db=bench --tables=1 \
        --table-size=1000 --threads=4 --time=6 "$@"
}
pgbench_pg() { pgbench -h "$dir/pg" -U postgres -n -f "$dir/insert.sql" -c 4 -T 6 bench; }

plan() {
    cat >"$dir/$1.toml" <<EOF
name = "peers"
workload = "sysbench-2025"
cells = ["$1@given.as_is"]
comparable = false
tests = ["insert"]
wait = "10ms"
[sizes]
clients = 4
tables = 1
rows = "1K"
write_duration = "6s"
warm_up = "0ms"
[server.given]
dsn = "$2"
EOF
}
# Its clients begin when its table is loaded: the fault waits for that.
ours() {
    code=0
    (cd "$dir" && rm -rf runs && exec "$plimsoll" --store runs run "$1.toml" --data data) || code=$?
    "$plimsoll" --store "$dir/runs" show | grep -a -A3 "given.as_is insert:" | head -4
    echo "counted: $(grep -a -o '"ok":[0-9]*,"retried":[0-9]*,"failed":[0-9]*\|"errors":{[^}]*}' "$dir"/runs/*/trials/*/events.jsonl | tail -2 | tr '\n' ' ')"
    return $code
}
has_begun() { grep -q '"event":"step_start","step":"insert' "$dir"/runs/*/trials/*/events.jsonl; }

# under NAME FAULT COMMAND...: runs the command, injects the fault after 3 s, and prints exit code and last words.
under() {
    name=$1 fault=$2
    shift 2
    rm -rf "$dir/runs"
    "$@" >"$dir/out" 2>&1 &
    tool=$!
    [ "$1" != ours ] || until_true "step of plimsoll" has_begun
    sleep 3
    # A session is there, but not at every instant in an insert.
    tries=20
    until $fault >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "the fault found nobody"; break; }
        sleep 0.05
    done
    code=0
    wait "$tool" || code=$?
    tool=
    echo "--- $name, $fault: exit code $code"
    grep -a -v '^ *$\|progress\|^\[ ' "$dir/out" | cut -c1-150 | tail -"${LINES_EACH:-8}"
}

# Faults.
pg_session_ends() {
    [ t = "$(pg postgres "select pg_terminate_backend(pid) from pg_stat_activity where datname in ('bench', 'ours')
        and query ilike '%insert%' and pid <> pg_backend_pid() limit 1")" ]
}
pg_backend_killed() {
    kill -9 "$(pg postgres "select pid from pg_stat_activity where datname in ('bench', 'ours') and query ilike '%insert%'
        and pid <> pg_backend_pid() limit 1")"
}
pg_insert_fails() {
    pg bench "create or replace function refuse() returns trigger language plpgsql as \$\$ begin
        if random() < 0.001 then raise exception 'no room' using errcode = '53100'; end if; return new; end \$\$" || true
    pg bench "create trigger refuse before insert on sbtest1 for each row execute function refuse()"
}
our_pg_insert_fails() {
    pg ours "create or replace function refuse() returns trigger language plpgsql as \$\$ begin
        if random() < 0.001 then raise exception 'no room' using errcode = '53100'; end if; return new; end \$\$"
    pg ours "create trigger refuse before insert on sbtest1 for each row execute function refuse()"
}
my_session_ends() {
    my "kill $(my "select id from information_schema.processlist where db in ('bench', 'ours') and info like 'insert%' limit 1")"
}
my_server_killed() { kill -9 "$server"; }
my_trigger="before insert on"
my_insert_fails() {
    my "create trigger bench.refuse $my_trigger bench.sbtest1 for each row if rand() < 0.001 then
        signal sqlstate '45000' set message_text = 'no room'; end if"
}
our_my_insert_fails() {
    my "create trigger ours.refuse $my_trigger ours.sbtest1 for each row if rand() < 0.001 then
        signal sqlstate '45000' set message_text = 'no room'; end if"
}

cat >"$dir/insert.sql" <<'EOF'
insert into sbtest1 (k, c, pad) values (random() * 1000, 'c', 'pad');
EOF
plan postgres "postgres://postgres@localhost/ours?socket=$dir/pg"
plan mariadb "mariadb://root@localhost/ours?socket=$dir/my.sock"

start_postgres
sysbench_pg prepare >/dev/null
for fault in pg_session_ends pg_backend_killed; do
    under "sysbench on PostgreSQL" $fault sysbench_pg run
    until_true PostgreSQL pg postgres "select 1"
    under "pgbench" $fault pgbench_pg
    until_true PostgreSQL pg postgres "select 1"
    under "plimsoll on PostgreSQL" $fault ours postgres
    until_true PostgreSQL pg postgres "select 1"
done
under "sysbench on PostgreSQL" pg_insert_fails sysbench_pg run
pg bench "drop trigger if exists refuse on sbtest1"
under "pgbench" pg_insert_fails pgbench_pg
under "plimsoll on PostgreSQL" our_pg_insert_fails ours postgres

for fault in my_session_ends my_insert_fails my_server_killed; do
    start_mariadb
    sysbench_my prepare >/dev/null
    under "sysbench on MariaDB" $fault sysbench_my run
    [ $fault != my_server_killed ] || { start_mariadb; }
    [ $fault != my_insert_fails ] || fault=our_my_insert_fails
    under "plimsoll on MariaDB" $fault ours mariadb
done
