//! Client hosts at a server of a trial: the rules that let them in, their account, and their end.

use super::forms::PostgresForms;
use super::link::{Link, rows};
use super::options::Major;
use super::server::{ASK_LIMIT, DATABASE};
use super::session;
use crate::guest::{GUEST, GuestOrder, Guests};
use crate::{EngineError, SessionClient, SqlForms, SqlServer, SqlSession};

/// PostgreSQL's rules about who may connect from where.
pub(super) const RULES_FILE: &str = "pg_hba.conf";

/// What stands before our rules in it.
const HEAD: &str = "# client hosts of this start\n";

/// The first version with SCRAM.
const FIRST_SCRAM: u32 = 100_000;

/// A statement with a password must be in no log and no statistics. Parameters that came with later
/// versions or with extensions are set where they are there.
const QUIET: &str = "set log_statement = 'none'; set log_min_duration_statement = -1; set \
                     log_min_error_statement = 'panic'; select set_config(name, case name when \
                     'log_transaction_sample_rate' then '0' when 'log_min_duration_sample' then \
                     '-1' when 'pgaudit.log' then 'none' else 'off' end, false) from pg_settings \
                     where name in ('pg_stat_statements.track_utility', 'track_activities', \
                     'debug_print_parse', 'debug_print_rewritten', 'debug_print_plan', \
                     'log_transaction_sample_rate', 'log_min_duration_sample', 'pgaudit.log')";

/// Makes the account the owner of all tables of the workload that it does not own yet: what their
/// owner may, index creation included, no grant gives.
const GIVE_TABLES: &str = "do $$ declare of record; begin for of in select c.oid::regclass::text as \
                           name from pg_class c join pg_namespace n on n.oid = c.relnamespace join \
                           pg_roles r on r.rolname = 'plimsoll_clients' where n.nspname = 'public' \
                           and c.relkind in ('r', 'p') and c.relowner <> r.oid loop execute 'alter \
                           table ' || of.name || ' owner to plimsoll_clients'; end loop; end $$";

/// Whether a server of this version knows SCRAM.
pub(super) fn has_scram(major: Major) -> bool {
    Major::of_version("10").is_some_and(|first| major >= first)
}

/// `listen_addresses`.
pub(super) fn listened(guests: &Guests) -> String {
    let addresses: Vec<String> = guests.listen.iter().map(ToString::to_string).collect();
    addresses.join(",")
}

/// The rules with those for client hosts behind them, in place of those of an earlier start. They
/// let in one account to one database, from these addresses alone.
pub(super) fn with_guests(rules: &str, guests: &Guests, is_scram: bool) -> String {
    let own = rules.split(HEAD).next().unwrap_or_default();
    let method = if is_scram { "scram-sha-256" } else { "md5" };
    let mut all = format!("{own}{HEAD}");
    for address in &guests.from {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        all.push_str(&format!(
            "host {DATABASE} {GUEST} {address}/{bits} {method}\n"
        ));
    }
    all
}

/// Makes the account, or gives the one that is there the new password. It may make tables, and what
/// it may do to those of the workload is [given](give_tables) to it. It is not a superuser and a
/// member of no role: whoever may take the superuser's role is one.
pub(super) fn make_account(
    admin: &Link,
    version_num: u32,
    guests: &Guests,
) -> Result<(), EngineError> {
    let guests = guests.clone();
    admin.ask(
        "make an account for client hosts",
        ASK_LIMIT,
        move |client| {
            client.batch_execute(QUIET)?;
            if version_num >= FIRST_SCRAM {
                client.batch_execute("set password_encryption = 'scram-sha-256'")?;
            }
            let find = format!("select 1 from pg_roles where rolname = '{GUEST}'");
            let verb = match rows(client, &find)?.is_empty() {
                true => "create",
                false => "alter",
            };
            let password = guests.password.reveal();
            client.batch_execute(&format!(
                "{verb} role {GUEST} login nosuperuser password '{password}'"
            ))
        },
    )
}

/// Lets the account do to the workload's tables what it likes: those that are there by now.
pub(super) fn give_tables(link: &Link) -> Result<(), EngineError> {
    let doing = "give the tables to the account of client hosts";
    link.ask(doing, ASK_LIMIT, |client| {
        client.batch_execute(&format!("grant all on schema public to {GUEST}"))?;
        client.batch_execute(GIVE_TABLES)
    })
}

/// A server on another machine, as a client host reaches it.
struct PostgresGuest {
    link: Link,
    client: SessionClient,
}

/// The way to it.
pub(super) fn server(order: &GuestOrder) -> Result<Box<dyn SqlServer>, EngineError> {
    let link = Link::external(&order.server(DATABASE), Some(&order.password))?;
    Ok(Box::new(PostgresGuest {
        link,
        client: order.client,
    }))
}

impl SqlServer for PostgresGuest {
    fn forms(&self) -> &'static dyn SqlForms {
        &PostgresForms
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        session::open(&self.link, self.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Password;

    #[test]
    fn client_hosts_are_let_in_from_their_addresses_alone() {
        let guests = |from: &[&str]| Guests {
            listen: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
            from: from.iter().map(|from| from.parse().unwrap()).collect(),
            password: Password::new("geheim".to_owned()),
        };
        assert_eq!(listened(&guests(&[])), "10.0.0.1,fd00::1");
        let first = with_guests("local all all trust\n", &guests(&["10.0.0.2"]), false);
        assert_eq!(
            first,
            "local all all trust\n# client hosts of this start\nhost ib plimsoll_clients \
             10.0.0.2/32 md5\n"
        );
        // The next start has other hosts, and the old ones are not let in any more.
        let second = with_guests(&first, &guests(&["10.0.0.3", "fd00::3"]), true);
        assert_eq!(
            second,
            "local all all trust\n# client hosts of this start\nhost ib plimsoll_clients \
             10.0.0.3/32 scram-sha-256\nhost ib plimsoll_clients fd00::3/128 scram-sha-256\n"
        );
        assert!(!second.contains("geheim"));
    }
}
