//! What a server's own statement log shows against the benchmark's specification. The expected
//! statements are written here by hand, as regular expressions; nothing of them comes from the
//! program.

mod log_support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use log_support::*;
use plimsoll_core::plan::Step;
use plimsoll_engine::{DrainLimits, Server};
use plimsoll_workload::insert_benchmark::{InsertBenchmarkRun, SharedServer};
use regex::Regex;

const NOBODY_STOPS: Duration = Duration::from_secs(60);

/// A tuple as it is since 2023-12: a whole price below 500, and a string of 10 to 20 characters of
/// which at least 62 % are "a".
const TUPLE: &str = r"\('\d{4}-\d\d-\d\d \d\d:\d\d:\d\d',\d{1,3},\d{1,5},\d{1,4},[1-4]?\d{1,2}\.00,'a{7,13}[A-Za-z0-9+/=]{3,7}'\)";
/// Before, the price was (u x 500 + customer) / 100.
const OLD_TUPLE: &str = r"\('\d{4}-\d\d-\d\d \d\d:\d\d:\d\d',\d{1,3},\d{1,5},\d{1,4},\d{1,4}\.\d\d,'a{7,13}[A-Za-z0-9+/=]{3,7}'\)";

const MIN: &str = r"select min\(transactionid\) from pi1";
const MAX: &str = r"select max\(transactionid\) from pi1";
const POINT: &str =
    r"SELECT transactionid, productid, data FROM pi1 WHERE transactionid in \(\d+(,\d+){9}\)";

/// How a family of servers logs, and what is its own in the statements.
struct Family {
    log: Log,
    parse: fn(&str) -> Vec<Logged>,
    create_table: Vec<&'static str>,
    create_indexes: Vec<&'static str>,
    ranges: [&'static str; 3],
    /// Without the number of rows, which is the batch's.
    delete: fn(u32) -> String,
    /// What a session says before anything else.
    greeting: &'static [&'static str],
    /// What the program asks, on a session of its own, once the tables are made.
    question: Option<&'static str>,
}

fn mysql_family(log: Log, create_table: &'static str, create_indexes: Vec<&'static str>) -> Family {
    Family {
        log,
        parse: parse_mysql,
        create_table: vec![create_table],
        create_indexes,
        ranges: [
            r"SELECT productid, customerid, price FROM pi1 FORCE INDEX \(pi1_marketsegment\) WHERE \(productid >= \d{1,4}\) ORDER BY productid, customerid, price LIMIT 10",
            r"SELECT cashregisterid,customerid,price FROM pi1 FORCE INDEX \(pi1_registersegment\) WHERE \(cashregisterid > \d{1,3}\) ORDER BY cashregisterid, customerid, price LIMIT 10",
            r"SELECT price,dateandtime,customerid FROM pi1 FORCE INDEX \(pi1_pdc\) WHERE \(price >= [1-4]?\d{1,2}\) ORDER BY price, dateandtime, customerid LIMIT 10",
        ],
        delete: |rows| {
            format!(
                r"delete from pi1 where transactionid >= (\d+) order by transactionid asc limit {rows}"
            )
        },
        greeting: &[
            "SELECT @@max_allowed_packet",
            "set names latin1",
            "set session sql_mode = concat(@@session.sql_mode, ',NO_ENGINE_SUBSTITUTION')",
        ],
        question: Some(
            "select table_name, engine from information_schema.tables where table_schema = \
            database()",
        ),
    }
}

fn innodb(log: Log) -> Family {
    mysql_family(
        log,
        r"create table pi1 \( transactionid bigint not null auto_increment, dateandtime datetime, cashregisterid int not null, customerid int not null, productid int not null, price int not null, data varchar\(4000\), primary key \(transactionid\) \) engine=innodb",
        vec![
            r"alter table pi1 add index pi1_marketsegment \(productid, customerid, price\), add index pi1_registersegment \(cashregisterid, customerid, price\), add index pi1_pdc \(price, dateandtime, customerid\)",
        ],
    )
}

fn rocksdb(log: Log) -> Family {
    mysql_family(
        log,
        r"create table pi1 \( transactionid bigint not null auto_increment, dateandtime datetime, cashregisterid int not null, customerid int not null, productid int not null, price int not null, data varchar\(4000\), primary key \(transactionid\) \) engine=rocksdb",
        vec![
            r"alter table pi1 add index pi1_marketsegment \(productid, customerid, price\)",
            r"alter table pi1 add index pi1_registersegment \(cashregisterid, customerid, price\)",
            r"alter table pi1 add index pi1_pdc \(price, dateandtime, customerid\)",
        ],
    )
}

fn postgres(log: Log) -> Family {
    Family {
        log,
        parse: parse_postgres,
        create_table: vec![
            r"create table pi1 \( transactionid bigserial primary key, dateandtime timestamp without time zone, cashregisterid int not null, customerid int not null, productid int not null, price int not null, data varchar\(4000\) \)",
            r"alter sequence pi1_transactionid_seq cache 1000",
        ],
        create_indexes: vec![
            r"create index pi1_marketsegment on pi1 \(productid, customerid, price\)",
            r"create index pi1_registersegment on pi1 \(cashregisterid, customerid, price\)",
            r"create index pi1_pdc on pi1 \(price, dateandtime, customerid\)",
        ],
        ranges: [
            r"SELECT productid, customerid, price FROM pi1 WHERE \(productid >= \d{1,4}\) ORDER BY productid, customerid, price LIMIT 10",
            r"SELECT cashregisterid,customerid,price FROM pi1 WHERE \(cashregisterid > \d{1,3}\) ORDER BY cashregisterid, customerid, price LIMIT 10",
            r"SELECT price,dateandtime,customerid FROM pi1 WHERE \(price >= [1-4]?\d{1,2}\) ORDER BY price, dateandtime, customerid LIMIT 10",
        ],
        delete: |rows| {
            format!(
                r"delete from pi1 where transactionid in \(select transactionid from pi1 where transactionid >= (\d+) order by transactionid asc limit {rows}\)"
            )
        },
        greeting: &[],
        question: None,
    }
}

/// How often a statement may be there.
#[derive(Clone, Copy, Debug)]
enum Times {
    Exactly(usize),
    /// Of the queries, which fill the time that the background writes take.
    SomeQueries,
}

/// A kind of statement that a step sends.
struct Shape {
    name: &'static str,
    /// Of the statement, or of each tuple of an insert.
    pattern: Regex,
    /// The tuples of an insert.
    tuples: Option<usize>,
    times: Times,
}

impl Shape {
    fn new(name: &'static str, pattern: &str, times: Times) -> Self {
        Self {
            name,
            pattern: Regex::new(&format!("^(?:{pattern})$")).unwrap(),
            tuples: None,
            times,
        }
    }

    fn insert(tuple: &str, tuples: usize, times: usize) -> Self {
        Self {
            tuples: Some(tuples),
            ..Self::new("insert", tuple, Times::Exactly(times))
        }
    }

    fn is_match(&self, text: &str) -> bool {
        let Some(wanted) = self.tuples else {
            return self.pattern.is_match(text);
        };
        let Some(tuples) = text.strip_prefix(
            "insert into pi1 (dateandtime,cashregisterid,customerid,productid,price,data) values\n",
        ) else {
            return false;
        };
        let tuples: Vec<&str> = tuples.split(",\n").collect();
        tuples.len() == wanted && tuples.iter().all(|tuple| self.pattern.is_match(tuple))
    }
}

/// The log of a step, each statement with the name of its shape, without the sessions' greetings.
struct StepLog {
    step: String,
    statements: Vec<(&'static str, Logged)>,
}

impl StepLog {
    /// Every statement has one of the shapes, and every shape is there as often as it must be.
    fn new(step: &str, family: &Family, text: &str, shapes: &[Shape]) -> Self {
        let mut greeted: BTreeMap<u32, usize> = BTreeMap::new();
        let mut statements = Vec::new();
        let mut questions = 0;
        for logged in (family.parse)(text) {
            if family.question == Some(&*logged.text) {
                questions += 1;
                continue;
            }
            let greetings = greeted.entry(logged.session).or_default();
            if *greetings < family.greeting.len() {
                assert_eq!(
                    logged.text, family.greeting[*greetings],
                    "{step}: the greeting of session {}",
                    logged.session
                );
                *greetings += 1;
                continue;
            }
            let Some(shape) = shapes.iter().find(|shape| shape.is_match(&logged.text)) else {
                panic!(
                    "{step}: no such statement is in the specification: {}",
                    logged.text
                );
            };
            statements.push((shape.name, logged));
        }
        let makes_tables = ["l", "l.i0"].contains(&step);
        assert_eq!(
            questions,
            usize::from(makes_tables && family.question.is_some()),
            "{step}: questions of which engine a table has"
        );
        let log = Self {
            step: step.to_owned(),
            statements,
        };
        for shape in shapes {
            let found = log.count(shape.name);
            match shape.times {
                Times::Exactly(times) => assert_eq!(found, times, "{step}: {}", shape.name),
                Times::SomeQueries => assert!(found > 0, "{step}: no {}", shape.name),
            }
        }
        log
    }

    fn count(&self, name: &str) -> usize {
        self.statements
            .iter()
            .filter(|(found, _)| *found == name)
            .count()
    }

    fn names(&self) -> Vec<&'static str> {
        self.statements.iter().map(|(name, _)| *name).collect()
    }

    /// Each role has a session of its own.
    fn roles_are_apart(&self, roles: &[&[&str]]) {
        let mut seen = BTreeSet::new();
        for role in roles {
            let of_role = self
                .statements
                .iter()
                .filter(|(name, _)| role.contains(name))
                .map(|(_, logged)| logged.session);
            let sessions: BTreeSet<u32> = of_role.collect();
            assert_eq!(sessions.len(), 1, "{}: sessions of {role:?}", self.step);
            assert!(
                seen.is_disjoint(&sessions),
                "{}: {role:?} shares a session",
                self.step
            );
            seen.extend(sessions);
        }
    }

    /// The smallest id is asked for before the first delete and again after every `rounds`; in
    /// between the bound of the deletes rises by the batch.
    fn deletes_walk(&self, delete: &str, batch: u64, rounds: usize) {
        let bound_of = Regex::new(&format!("^(?:{delete})$")).unwrap();
        let mut next = None;
        let mut since_look_up = 0;
        for (name, logged) in self
            .statements
            .iter()
            .filter(|(name, _)| ["min", "delete"].contains(name))
        {
            if *name == "min" {
                assert!(
                    since_look_up == 0 || since_look_up == rounds,
                    "{}: looked up after {since_look_up} deletes",
                    self.step
                );
                (next, since_look_up) = (None, 0);
                continue;
            }
            let bound: u64 = bound_of.captures(&logged.text).unwrap()[1].parse().unwrap();
            assert!(
                since_look_up > 0 || next.is_none(),
                "{}: a delete before the look-up",
                self.step
            );
            assert!(
                next.is_none_or(|next| next == bound),
                "{}: {} after {next:?}",
                self.step,
                logged.text
            );
            next = Some(bound + batch);
            since_look_up += 1;
        }
    }

    /// Neither the inserter nor the deleter runs away from the other: two queues of eight in the
    /// original, ten statements here, and each has one under way.
    fn deletes_keep_pace(&self) {
        let mut ahead = 0_i64;
        for (name, _) in &self.statements {
            ahead += i64::from(*name == "insert") - i64::from(*name == "delete");
            assert!(
                ahead.abs() <= 12,
                "{}: inserts are {ahead} ahead",
                self.step
            );
        }
        assert_eq!(ahead, 0, "{}", self.step);
    }
}

/// A server that logs, and the benchmark on it.
struct Proof {
    family: Family,
    server: SharedServer,
    run: InsertBenchmarkRun,
    steps: Vec<Step>,
}

impl Proof {
    fn new(server: Box<dyn Server>, family: Family, workload: &str, sizes: &str) -> Self {
        let server: SharedServer = Arc::new(server);
        let (run, steps) = benchmark(&server, workload, &format!("duration = \"1s\"\n{sizes}"));
        Self {
            family,
            server,
            run,
            steps,
        }
    }

    /// Runs a step and checks its log.
    fn run(&mut self, name: &str, shapes: &[Shape]) -> StepLog {
        let step = self
            .steps
            .iter()
            .find(|step| step.name == name)
            .unwrap()
            .clone();
        self.family.log.take();
        perform(&mut self.run, &step);
        let text = self.family.log.take();
        StepLog::new(name, &self.family, &text, shapes)
    }

    /// A read-write step runs until a thousand queries are logged, however slow the server is.
    fn run_queries(
        &mut self,
        name: &str,
        shapes: &[Shape],
        queries: &[&str],
        check: impl Fn(&StepLog),
    ) -> BTreeMap<String, usize> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..100 {
            let log = self.run(name, shapes);
            check(&log);
            for query in queries {
                *counts.entry((*query).to_owned()).or_default() += log.count(query);
            }
            if counts.values().sum::<usize>() >= 1000 {
                return counts;
            }
        }
        panic!("{name}: a hundred seconds were not enough for a thousand queries: {counts:?}");
    }

    fn finish(self) {
        for check in self.run.verify(false).unwrap() {
            assert_eq!(check.found_rows, check.expected_rows, "{}", check.table);
        }
        drop(self.run);
        let server = Arc::try_unwrap(self.server)
            .ok()
            .expect("every session is closed after its step");
        server.stop(NOBODY_STOPS).unwrap();
    }
}

/// All ten steps: at least a thousand operations of each, and every statement of the log is one of
/// the specification's.
fn prove_current(server: Box<dyn Server>, family: Family) {
    let delete = family.delete;
    let (create_table, create_indexes, ranges) = (
        family.create_table.clone(),
        family.create_indexes.clone(),
        family.ranges,
    );
    let once = |names: [&'static str; 3], patterns: &[&str]| -> Vec<Shape> {
        names
            .into_iter()
            .zip(patterns)
            .map(|(name, pattern)| Shape::new(name, pattern, Times::Exactly(1)))
            .collect()
    };
    let mut proof = Proof::new(
        server,
        family,
        "insert-benchmark",
        "rows = 100_000\nwrite_rows = 62_500\n",
    );

    let mut shapes = once(["create", "sequence", ""], &create_table);
    shapes.push(Shape::insert(TUPLE, 100, 1000));
    let log = proof.run("l.i0", &shapes);
    assert_eq!(
        log.names()[..create_table.len()],
        ["create", "sequence"][..create_table.len()]
    );
    log.roles_are_apart(&[&["create", "sequence"], &["insert"]]);

    let mut shapes = once(["first", "second", "third"], &create_indexes);
    shapes.push(Shape::insert(TUPLE, 100, 1));
    let log = proof.run("l.x", &shapes);
    assert_eq!(
        log.names(),
        ["insert", "first", "second", "third"][..=create_indexes.len()]
    );

    for (step, batch, rounds) in [("l.i1", 50_u32, 1000), ("l.i2", 5, 2500_usize)] {
        let shapes = [
            Shape::insert(TUPLE, batch as usize, rounds),
            Shape::new("delete", &delete(batch), Times::Exactly(rounds)),
            Shape::new("min", MIN, Times::Exactly(rounds.div_ceil(1001))),
        ];
        let log = proof.run(step, &shapes);
        log.roles_are_apart(&[&["insert"], &["delete", "min"]]);
        log.deletes_walk(&delete(batch), batch.into(), 1001);
        log.deletes_keep_pace();
    }

    for (rate, writes) in [(100, 2), (500, 10), (1000, 20)] {
        let background = || {
            vec![
                Shape::insert(TUPLE, 50, writes),
                Shape::new("delete", &delete(50), Times::Exactly(writes)),
                Shape::new("min", MIN, Times::Exactly(1)),
            ]
        };
        let mut shapes = background();
        let kinds = ["market", "register", "pdc"];
        shapes.extend(
            kinds
                .into_iter()
                .zip(ranges)
                .map(|(kind, range)| Shape::new(kind, range, Times::SomeQueries)),
        );
        let counts = proof.run_queries(&format!("qr{rate}"), &shapes, &kinds, |log| {
            log.roles_are_apart(&[&["insert"], &["delete", "min"], &kinds]);
            log.deletes_walk(&delete(50), 50, 1001);
        });
        // Drawn uniformly: a quarter is more than five standard deviations below a third of a
        // thousand.
        let all: usize = counts.values().sum();
        assert!(counts.values().all(|&count| count * 4 > all), "{counts:?}");

        let mut shapes = background();
        shapes.push(Shape::new("point", POINT, Times::SomeQueries));
        shapes.push(Shape::new("max", MAX, Times::SomeQueries));
        proof.run_queries(&format!("qp{rate}"), &shapes, &["point"], |log| {
            log.roles_are_apart(&[&["insert"], &["delete", "min"], &["point", "max"]]);
            assert_eq!(
                log.count("max"),
                log.count("point").div_ceil(100),
                "{}",
                log.step
            );
            assert_eq!(
                log.names()
                    .into_iter()
                    .find(|name| ["point", "max"].contains(name)),
                Some("max"),
                "{}",
                log.step
            );
        });
    }
    proof.finish();
}

#[test]
fn mysql_5_7_logs_the_specified_statements() {
    let Some((_folders, server, log)) = mysql(
        "statement_log_mysql_5_7",
        mysql_support::MYSQL_OLD,
        "innodb",
    ) else {
        return;
    };
    prove_current(server, innodb(log));
}

#[test]
fn mysql_9_logs_the_specified_statements() {
    let Some((_folders, server, log)) =
        mysql("statement_log_mysql_9", mysql_support::MYSQL_NEW, "innodb")
    else {
        return;
    };
    prove_current(server, innodb(log));
}

#[test]
fn mariadb_logs_the_specified_statements() {
    let Some((_folders, server, log)) =
        mysql("statement_log_mariadb", mysql_support::MARIADB, "innodb")
    else {
        return;
    };
    prove_current(server, innodb(log));
}

#[test]
fn mariadb_on_rocksdb_logs_the_specified_statements() {
    let Some((_folders, server, log)) =
        mysql("statement_log_rocksdb", mysql_support::MARIADB, "rocksdb")
    else {
        return;
    };
    prove_current(server, rocksdb(log));
}

#[test]
fn postgres_9_6_logs_the_specified_statements() {
    let Some((_folders, server, log)) = postgres_server("statement_log_postgres_9_6", "9.6") else {
        return;
    };
    prove_current(server, postgres(log));
}

#[test]
fn postgres_18_logs_the_specified_statements() {
    let Some((_folders, server, log)) = postgres_server("statement_log_postgres_18", "18") else {
        return;
    };
    prove_current(server, postgres(log));
}

#[test]
fn the_sequence_of_2017_logs_the_specified_statements() {
    let Some((_folders, server, log)) =
        mysql("statement_log_2017", mysql_support::MYSQL_OLD, "innodb")
    else {
        return;
    };
    let mut proof = Proof::new(
        server,
        innodb(log),
        "insert-benchmark-2017",
        "rows = 10_000\n",
    );
    let shapes = [
        Shape::new(
            "create",
            r"create table pi1 \( transactionid bigint not null auto_increment, .*, price float not null, data varchar\(4000\), primary key \(transactionid\) \) engine=innodb",
            Times::Exactly(1),
        ),
        // Index names had no table in front then.
        Shape::new(
            "indexes",
            r"alter table pi1 add index marketsegment \(price, customerid\), add index registersegment \(cashregisterid, price, customerid\), add index pdc \(price, dateandtime, customerid\)",
            Times::Exactly(1),
        ),
        Shape::insert(OLD_TUPLE, 100, 100),
    ];
    assert_eq!(
        proof.run("l", &shapes).names()[..3],
        ["create", "indexes", "insert"]
    );

    let scans = [
        (
            "primary",
            r"select transactionid,data,customerid from pi1 where customerid < 0",
            2,
        ),
        (
            "market",
            r"select price,customerid from pi1 where price >= 0 and customerid < 0 order by price,customerid",
            1,
        ),
        (
            "register",
            r"select cashregisterid,price,customerid from pi1 where cashregisterid >= 0 and customerid < 0 order by cashregisterid,price,customerid",
            1,
        ),
        (
            "pdc",
            r"select price,dateandtime,customerid from pi1 where price >= 0 and customerid < 0 order by price,dateandtime,customerid",
            1,
        ),
    ];
    let shapes =
        scans.map(|(name, pattern, times)| Shape::new(name, pattern, Times::Exactly(times)));
    assert_eq!(
        proof.run("scan", &shapes).names(),
        ["primary", "market", "register", "pdc", "primary"]
    );

    let kinds = ["market", "register", "pdc"];
    for (step, writes) in [("q1000", 10), ("q100", 1)] {
        let shapes = [
            Shape::insert(OLD_TUPLE, 100, writes),
            Shape::new(
                "market",
                r"SELECT price,customerid FROM pi1 FORCE INDEX \(marketsegment\) WHERE \(price>=\d{1,4}\.\d\d\) ORDER BY price,customerid LIMIT 10",
                Times::SomeQueries,
            ),
            Shape::new(
                "register",
                r"SELECT cashregisterid,price,customerid FROM pi1 FORCE INDEX \(registersegment\) WHERE \(cashregisterid>\d{1,3}\) ORDER BY cashregisterid,price,customerid LIMIT 10",
                Times::SomeQueries,
            ),
            Shape::new(
                "pdc",
                r"SELECT price,dateandtime,customerid FROM pi1 FORCE INDEX \(pdc\) WHERE \(price>=\d{1,4}\.\d\d\) ORDER BY price,dateandtime,customerid LIMIT 10",
                Times::SomeQueries,
            ),
        ];
        proof.run_queries(step, &shapes, &kinds, |log| {
            log.roles_are_apart(&[&["insert"], &kinds])
        });
    }
    proof.finish();
}

#[test]
fn the_deletes_of_2023_are_by_range() {
    let range = Regex::new(r"transactionid>=(\d+) and transactionid<(\d+)").unwrap();
    for (test, is_mysql) in [
        ("statement_log_2023_mysql", true),
        ("statement_log_2023_postgres", false),
    ] {
        let (_folders, server, family): (Box<dyn std::any::Any>, _, _) = if is_mysql {
            let Some((folders, server, log)) = mysql(test, mysql_support::MYSQL_OLD, "innodb")
            else {
                continue;
            };
            (Box::new(folders), server, innodb(log))
        } else {
            let Some((folders, server, log)) = postgres_server(test, "18") else {
                continue;
            };
            (Box::new(folders), server, postgres(log))
        };
        let mut proof = Proof::new(
            server,
            family,
            "insert-benchmark-2023-05",
            "rows = 5000\nwrite_rows = 60_000\n",
        );
        let anything = |name| {
            Shape::new(
                name,
                r"(?s)create table .*|alter .*|create index .*|insert .*",
                Times::SomeQueries,
            )
        };
        proof.run("l.i0", &[anything("load")]);
        proof.run("l.x", &[anything("index")]);
        let shapes = [
            Shape::insert(OLD_TUPLE, 50, 1200),
            Shape::new(
                "delete",
                r"delete from pi1 where\(transactionid>=\d+ and transactionid<\d+\)",
                Times::Exactly(1200),
            ),
            // The smallest id was looked up once.
            Shape::new("min", MIN, Times::Exactly(1)),
        ];
        let log = proof.run("l.i1", &shapes);
        let bounds = log
            .statements
            .iter()
            .filter_map(|(_, logged)| range.captures(&logged.text));
        let bounds: Vec<(u64, u64)> = bounds
            .map(|found| (found[1].parse().unwrap(), found[2].parse().unwrap()))
            .collect();
        assert!(
            bounds.iter().all(|(low, high)| high - low == 50)
                && bounds.windows(2).all(|pair| pair[0].1 == pair[1].0),
            "{bounds:?}"
        );
    }
}

/// Four partitions for the 10,000 + 10,000 + 100 + 3200 rows of one table.
#[test]
fn partitioned_tables_are_made_as_specified_and_used() {
    const COLUMNS: &str = "cashregisterid int not null, customerid int not null, productid int not \
                          null, price int not null, data varchar\\(4000\\)";
    for (test, build) in [
        ("statement_log_partitions", mysql_support::MYSQL_OLD),
        ("statement_log_partitions", mysql_support::MYSQL_NEW),
    ] {
        let Some((_folders, server, log)) = mysql(test, build, "innodb") else {
            continue;
        };
        let create = format!(
            r"create table pi1 \( transactionid bigint not null auto_increment, dateandtime datetime, {COLUMNS}, primary key \(transactionid\) \) engine=innodb partition by range\( transactionid \) \( partition p0 values less than \(5825\), partition p1 values less than \(11650\), partition p2 values less than \(17475\), partition p3 values less than \(MAXVALUE\) \)"
        );
        let count = "select count(*) from information_schema.partitions where table_name = 'pi1' \
                    and partition_name is not null";
        prove_partitions(server, innodb(log), &[&create], count, &["pi1"]);
    }
    let Some((_folders, server, log)) = postgres_server("statement_log_partitions_postgres", "18")
    else {
        return;
    };
    let create = format!(
        r"create table pi1 \( transactionid bigserial primary key, dateandtime timestamp without time zone, {COLUMNS} \) partition by range\( transactionid \)"
    );
    let statements = [
        create.as_str(),
        r"create table pi1_p0 partition of pi1 for values from \(0\) to \(5825\)",
        r"create table pi1_p1 partition of pi1 for values from \(5825\) to \(11650\)",
        r"create table pi1_p2 partition of pi1 for values from \(11650\) to \(17475\)",
        r"create table pi1_p3 partition of pi1 for values from \(17475\) to \(MAXVALUE\)",
        r"alter sequence pi1_transactionid_seq cache 1000",
    ];
    let count = "select count(*) from pg_inherits where inhparent = 'pi1'::regclass";
    prove_partitions(
        server,
        postgres(log),
        &statements,
        count,
        &["pi1_p0", "pi1_p1", "pi1_p2", "pi1_p3"],
    );
}

fn prove_partitions(
    server: Box<dyn Server>,
    family: Family,
    create: &[&str],
    count: &str,
    storage_tables: &[&str],
) {
    let mut proof = Proof::new(
        server,
        family,
        "insert-benchmark",
        "rows = 10_000\nwrite_rows = 10_000\npartitions = 4\n",
    );
    let order = &["first", "second", "third", "fourth", "fifth", "sixth"][..create.len()];
    let mut shapes: Vec<Shape> = order
        .iter()
        .zip(create)
        .map(|(name, pattern)| Shape::new(name, pattern, Times::Exactly(1)))
        .collect();
    shapes.push(Shape::insert(TUPLE, 100, 100));
    assert_eq!(proof.run("l.i0", &shapes).names()[..create.len()], *order);
    let anything = [Shape::new("any", r"(?s).*", Times::SomeQueries)];
    for step in [
        "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
    ] {
        proof.run(step, &anything);
    }
    assert_eq!(
        proof
            .server
            .connect()
            .unwrap()
            .query_integer(count)
            .unwrap(),
        Some(4)
    );
    assert_eq!(proof.run.table_names(), storage_tables);
    let now = Instant::now();
    proof
        .server
        .drain(
            &proof.run.table_names(),
            &DrainLimits::new(now, now + NOBODY_STOPS, &|| false),
        )
        .unwrap();
    proof.finish();
}
