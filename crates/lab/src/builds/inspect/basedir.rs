//! A user's own build: an installation folder in the layout of the tarballs, recognised by its
//! files and by what its server says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::engines::{ENGINES, EngineName, Layout, Lives, Speaks};
use plimsoll_core::name::natural_cmp;
use plimsoll_engine::{DataInit, InstalledBuild};

use crate::builds::error::BuildError;
use crate::builds::inspect::facts::StatedFacts;
use crate::builds::inspect::library::{
    engine_of_file, find_db_bench, find_libraries, library_path,
};
use crate::builds::inspect::server_file::{ask, ask_version, real_program, sha256, short_version};
use crate::builds::inspect::toolchain::toolchain;

const SERVER_FOLDERS: [&str; 3] = ["bin", "sbin", "libexec"];
const MYSQL_SERVERS: [&str; 2] = ["mariadbd", "mysqld"];
/// Where a plugin of RocksDB may be.
const PLUGIN_FOLDERS: [&str; 3] = ["lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin"];

/// Recognises the build in a folder.
pub(crate) fn recognise(basedir: &Path, label: &str) -> Result<InstalledBuild, BuildError> {
    let basedir = basedir.canonicalize().map_err(|error| {
        BuildError::Usage(format!(
            "the folder {} cannot be read: {error}; give the folder that holds bin/",
            basedir.display()
        ))
    })?;
    if basedir.is_file() {
        return library_file(&basedir, label);
    }
    if basedir.join("bin/postgres").is_file() {
        return postgres(&basedir, label);
    }
    let server = SERVER_FOLDERS
        .iter()
        .flat_map(|folder| MYSQL_SERVERS.map(|name| basedir.join(folder).join(name)))
        .find(|path| path.is_file());
    if let Some(server) = server {
        return mysql(&basedir, server, label);
    }
    match find_libraries(&basedir).as_slice() {
        [(engine, file)] => library(*engine, &basedir, file.clone(), label),
        [] => Err(BuildError::Usage(format!(
            "{} holds no server (looked for bin/postgres, for mysqld and mariadbd in bin, sbin and \
            libexec, and for librocksdb*.so* and libsqlite3*.so* here and in lib); give the folder \
            that holds bin/, or the shared library of RocksDB or SQLite",
            basedir.display()
        ))),
        several => {
            let files = several.iter().map(|(_, file)| file.display().to_string());
            Err(BuildError::Usage(format!(
                "{} holds libraries of several engines; give the file of one: {}",
                basedir.display(),
                files.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}

/// An embedded engine by its library's file, whose folder is the basedir. What has another name is
/// taken for RocksDB's, whose packages have many.
fn library_file(file: &Path, label: &str) -> Result<InstalledBuild, BuildError> {
    let is_library = file
        .file_name()
        .is_some_and(|name| name.to_string_lossy().contains(".so"));
    let engine = engine_of_file(file).unwrap_or(EngineName::Rocksdb);
    match file.parent() {
        Some(folder) if is_library => library(engine, folder, file.to_owned(), label),
        _ => Err(BuildError::Usage(format!(
            "{} is a file but not a shared library; give a folder that holds bin/, SQLite's \
            libsqlite3.so, or RocksDB's librocksdb.so (make shared_lib), with db_bench next to it \
            if you need that",
            file.display()
        ))),
    }
}

fn library(
    engine: EngineName,
    basedir: &Path,
    library: PathBuf,
    label: &str,
) -> Result<InstalledBuild, BuildError> {
    describe(engine, basedir, library, label, |_, build| {
        build.init = DataInit::Library;
        if engine.facts().speaks == Speaks::KeysAndValues {
            build.db_bench = find_db_bench(basedir);
        }
        Ok(())
    })
}

fn postgres(basedir: &Path, label: &str) -> Result<InstalledBuild, BuildError> {
    let server = basedir.join("bin/postgres");
    let initdb = basedir.join("bin/initdb");
    if !initdb.is_file() {
        return Err(lacks(basedir, "bin/initdb"));
    }
    let init = DataInit::Initdb { program: initdb };
    let engine = engine_of(Layout::Initdb, "")?;
    describe(engine, basedir, server, label, |_, build| {
        build.init = init;
        Ok(())
    })
}

fn mysql(basedir: &Path, server: PathBuf, label: &str) -> Result<InstalledBuild, BuildError> {
    // FB MySQL and other forks state plain versions; only MariaDB names itself.
    let asked = engine_of(Layout::Share, "")?;
    let engine = engine_of(
        Layout::Share,
        &ask_version(asked, &server, &BTreeMap::new())?,
    )?;
    let share = ["share", "share/mysql", "share/mariadb"]
        .iter()
        .map(|name| basedir.join(name))
        .find(|path| has_messages(path));
    let share = share.ok_or_else(|| lacks(basedir, "share/english/errmsg.sys"))?;
    describe(engine, basedir, server, label, |version, build| {
        // `--user` because the help, too, is refused to root otherwise.
        let help = ask(
            &build.server,
            &["--no-defaults", "--user=nobody", "--verbose", "--help"],
            &BTreeMap::new(),
        )
        .unwrap_or_default();
        let has_option = |option: &str| {
            help.lines()
                .any(|line| line.trim_start().starts_with(option))
        };
        let facts = engine.facts().builds.as_ref();
        let has_script = facts.is_some_and(|facts| facts.inits.contains(&"install_db"));
        if has_script {
            build.init = install_script(basedir)?;
        } else if natural_cmp(version, "5.7").is_ge() {
            build.init = DataInit::Initialize;
            // It may default to a folder that is not there.
            build
                .server_options
                .push("--secure-file-priv=NULL".to_owned());
        } else {
            build.init = bootstrap_scripts(basedir, &share)?;
        }
        if has_option("--mysqlx[=") {
            build.server_options.push("--mysqlx=OFF".to_owned());
        }
        build.plugin_dir = PLUGIN_FOLDERS
            .iter()
            .map(|name| basedir.join(name))
            .find(|path| path.join("ha_rocksdb.so").is_file());
        let has_plugin = build.plugin_dir.is_some();
        let rocksdb = if has_plugin {
            Some("--plugin-load-add=ha_rocksdb.so")
        } else {
            has_option("--rocksdb[=").then_some("--rocksdb=ON")
        };
        build
            .storage_plugins
            .extend(rocksdb.map(|option| ("rocksdb".to_owned(), option.to_owned())));
        build.share_dir = Some(share);
        Ok(())
    })
}

/// The engine of a layout whose server states this version: the one that the version names, else
/// the one that names itself nowhere.
fn engine_of(layout: Layout, stated: &str) -> Result<EngineName, BuildError> {
    let of_layout = || {
        ENGINES.iter().filter_map(move |facts| {
            let builds = facts
                .builds
                .as_ref()
                .filter(|builds| builds.layout == layout)?;
            Some((facts.name, builds.names_itself))
        })
    };
    of_layout()
        .find(|(_, word)| word.is_some_and(|word| stated.contains(word)))
        .or_else(|| of_layout().find(|(_, word)| word.is_none()))
        .map(|(name, _)| name)
        .ok_or_else(|| BuildError::Unfit(format!("no engine has the layout {layout:?}")))
}

/// What all engines have in common; `finish` adds what they have not.
fn describe(
    engine: EngineName,
    basedir: &Path,
    server: PathBuf,
    label: &str,
    finish: impl FnOnce(&str, &mut InstalledBuild) -> Result<(), BuildError>,
) -> Result<InstalledBuild, BuildError> {
    // What a library needs may lie beside it.
    let env: BTreeMap<String, String> = library_path(&server)
        .filter(|_| engine.facts().lives == Lives::Library)
        .into_iter()
        .collect();
    let StatedFacts {
        version,
        toolchain: told,
    } = StatedFacts::ask(engine, &server, &env)?;
    let real = real_program(&server);
    let mut toolchain = toolchain(&real, basedir, "own build");
    toolchain.extend(told);
    let mut build = InstalledBuild {
        name: format!("{engine}+{label}"),
        engine,
        version: version.clone(),
        origin: basedir.display().to_string(),
        toolchain,
        server_sha256: sha256(&real)?,
        server,
        basedir: basedir.to_owned(),
        share_dir: None,
        plugin_dir: None,
        init: DataInit::Initialize,
        env,
        server_options: Vec::new(),
        storage_plugins: BTreeMap::new(),
        db_bench: None,
        links: Vec::new(),
    };
    finish(short_version(&version), &mut build)?;
    Ok(build)
}

fn has_messages(share: &Path) -> bool {
    share.join("english/errmsg.sys").is_file()
}

fn install_script(basedir: &Path) -> Result<DataInit, BuildError> {
    let names = [
        "scripts/mariadb-install-db",
        "bin/mariadb-install-db",
        "scripts/mysql_install_db",
        "bin/mysql_install_db",
    ];
    let script = names
        .iter()
        .map(|name| basedir.join(name))
        .find(|path| path.is_file());
    let script = script.ok_or_else(|| lacks(basedir, "scripts/mariadb-install-db"))?;
    let text = fs::read(&script).map_err(BuildError::io("read", &script))?;
    let has_auth_method =
        String::from_utf8_lossy(&text).contains("auth-root-authentication-method");
    Ok(DataInit::InstallDb {
        script,
        has_auth_method,
    })
}

fn bootstrap_scripts(basedir: &Path, share: &Path) -> Result<DataInit, BuildError> {
    let names = [
        "mysql_system_tables.sql",
        "mysql_system_tables_data.sql",
        "fill_help_tables.sql",
    ];
    let scripts: Vec<PathBuf> = names.iter().map(|name| share.join(name)).collect();
    match scripts.iter().find(|path| !path.is_file()) {
        Some(missing) => Err(lacks(basedir, &missing.display().to_string())),
        None => Ok(DataInit::Bootstrap { scripts }),
    }
}

fn lacks(basedir: &Path, file: &str) -> BuildError {
    BuildError::Usage(format!(
        "{} lacks {file}; give the folder that `make install` or the tarball filled",
        basedir.display()
    ))
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::write_script;

    use super::*;

    /// A folder with these programs (path, what it prints) and files.
    fn tree(programs: &[(&str, &str)], files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, prints) in programs {
            write_script(
                &dir.path().join(path),
                &format!("cat <<'END'\n{prints}\nEND"),
            );
        }
        for path in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    }

    #[test]
    fn layouts_are_recognised() {
        let mysql8 = "x  Ver 8.0.35 for Linux on x86_64\n  --mysqlx[=name]     Enable or disable \
                     MYSQLX plugin.";
        let fb = "x  Ver 8.0.32-fb for Linux on x86_64\n  --rocksdb[=name]    Enable or disable \
                 ROCKSDB plugin.";
        let system = [
            "mysql_system_tables.sql",
            "mysql_system_tables_data.sql",
            "fill_help_tables.sql",
        ];
        let old: Vec<String> = system
            .iter()
            .map(|name| format!("share/{name}"))
            .chain(["share/english/errmsg.sys".to_owned()])
            .collect();
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        struct Case<'a> {
            programs: &'a [(&'a str, &'a str)],
            files: &'a [&'a str],
            engine: EngineName,
            version: &'a str,
            server: &'a str,
            init: &'a str,
            options: &'a [&'a str],
            rocksdb: Option<&'a str>,
        }
        let cases = [
            Case {
                programs: &[("bin/mysqld", mysql8)],
                files: &["share/english/errmsg.sys"],
                engine: EngineName::Mysql,
                version: "8.0.35",
                server: "bin/mysqld",
                init: "Initialize",
                options: &["--secure-file-priv=NULL", "--mysqlx=OFF"],
                rocksdb: None,
            },
            Case {
                programs: &[("libexec/mysqld", fb)],
                files: &["share/mysql/english/errmsg.sys"],
                engine: EngineName::Mysql,
                version: "8.0.32-fb",
                server: "libexec/mysqld",
                init: "Initialize",
                options: &["--secure-file-priv=NULL"],
                rocksdb: Some("--rocksdb=ON"),
            },
            Case {
                programs: &[("bin/mysqld", "x  Ver 5.6.51 for Linux on x86_64")],
                files: &old,
                engine: EngineName::Mysql,
                version: "5.6.51",
                server: "bin/mysqld",
                init: "Bootstrap",
                options: &[],
                rocksdb: None,
            },
            Case {
                programs: &[
                    ("sbin/mariadbd", "x  Ver 11.4.5-MariaDB-log for Linux"),
                    (
                        "scripts/mariadb-install-db",
                        "--auth-root-authentication-method=x",
                    ),
                ],
                files: &["share/english/errmsg.sys", "lib/plugin/ha_rocksdb.so"],
                engine: EngineName::Mariadb,
                version: "11.4.5-MariaDB",
                server: "sbin/mariadbd",
                init: "has_auth_method: true",
                options: &[],
                rocksdb: Some("--plugin-load-add=ha_rocksdb.so"),
            },
            Case {
                programs: &[
                    ("bin/mysqld", "x  Ver 10.1.8-MariaDB for Linux"),
                    ("bin/mysql_install_db", "old"),
                ],
                files: &["share/english/errmsg.sys"],
                engine: EngineName::Mariadb,
                version: "10.1.8-MariaDB",
                server: "bin/mysqld",
                init: "has_auth_method: false",
                options: &[],
                rocksdb: None,
            },
            Case {
                programs: &[
                    ("bin/postgres", "postgres (PostgreSQL) 18devel"),
                    ("bin/initdb", ""),
                ],
                files: &[],
                engine: EngineName::Postgres,
                version: "18devel",
                server: "bin/postgres",
                init: "Initdb",
                options: &[],
                rocksdb: None,
            },
        ];
        for case in cases {
            let dir = tree(case.programs, case.files);
            let build = recognise(dir.path(), "my_label").unwrap();
            let root = dir.path().canonicalize().unwrap();
            assert_eq!(build.name, format!("{}+my_label", case.engine));
            assert_eq!(
                (build.engine, build.version.as_str()),
                (case.engine, case.version)
            );
            assert_eq!(build.server, root.join(case.server));
            assert_eq!(build.basedir, root);
            assert!(
                format!("{:?}", build.init).contains(case.init),
                "{:?}",
                build.init
            );
            assert_eq!(build.server_options, case.options);
            assert_eq!(
                build.storage_plugins.get("rocksdb").map(String::as_str),
                case.rocksdb
            );
            let has_plugin_file = case.files.contains(&"lib/plugin/ha_rocksdb.so");
            assert_eq!(
                build.plugin_dir,
                has_plugin_file.then(|| root.join("lib/plugin"))
            );
            assert_eq!(
                build.server_sha256,
                sha256(&root.join(case.server)).unwrap()
            );
            assert_eq!(build.toolchain["compiler"], "unknown");
            assert_eq!(
                build.share_dir.is_some(),
                case.engine != EngineName::Postgres
            );
        }
    }

    #[test]
    fn what_is_no_installation_is_refused_with_what_is_missing() {
        let version = "x  Ver 5.6.51 for Linux";
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str);
        let cases: [Case<'_>; 5] = [
            (&[], &["README"], "holds no server"),
            (
                &[("bin/postgres", "postgres (PostgreSQL) 16.4")],
                &[],
                "lacks bin/initdb",
            ),
            (
                &[("bin/mysqld", version)],
                &[],
                "lacks share/english/errmsg.sys",
            ),
            (
                &[("bin/mysqld", version)],
                &["share/english/errmsg.sys"],
                "mysql_system_tables.sql",
            ),
            (
                &[("bin/mysqld", "Hello")],
                &["share/english/errmsg.sys"],
                "states no version: \"Hello\"",
            ),
        ];
        for (programs, files, wanted) in cases {
            let dir = tree(programs, files);
            let error = recognise(dir.path(), "x").unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert!(
            recognise(Path::new("/nowhere/at/all"), "x")
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }

    #[test]
    fn a_server_that_does_not_run_is_an_error_with_its_words() {
        let dir = tempfile::tempdir().unwrap();
        write_script(
            &dir.path().join("bin/mysqld"),
            "echo libaio.so.1: cannot open shared object file >&2; exit 127",
        );
        let error = recognise(dir.path(), "x").unwrap_err().to_string();
        assert!(
            error.contains("does not run here") && error.contains("libaio.so.1"),
            "{error}"
        );
    }
}
