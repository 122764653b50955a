//! The tables of a workload file, in the forms of an engine.

use plimsoll_core::workload_file::Table;
use plimsoll_engine::{KeyPlace, SqlForms};

use crate::filling::{ColumnFill, Finish, TableFill};

/// Makes a table. `suffix` is the engine's.
pub(super) fn create_table(table: &Table, forms: &dyn SqlForms, suffix: &str) -> String {
    let mut is_key_written = false;
    let column = |column: &plimsoll_core::workload_file::Column| {
        let (name, sql_type) = (&column.name, &column.sql_type);
        if !column.is_auto {
            return format!("{name} {sql_type} NOT NULL");
        }
        let auto_key = forms.auto_key(sql_type);
        is_key_written |= auto_key.key == KeyPlace::Included;
        format!("{name} {}", auto_key.column)
    };
    let mut parts: Vec<String> = table.columns.iter().map(column).collect();
    if !is_key_written {
        parts.push(format!("PRIMARY KEY ({})", table.primary_key.join(", ")));
    }
    format!("CREATE TABLE {} ({}){suffix}", table.name, parts.join(", "))
}

/// What a table is loaded with. Its rows follow from the seed and its name.
pub(super) fn table_fill(table: &Table, forms: &dyn SqlForms) -> TableFill {
    let name = &table.name;
    let auto = table.columns.iter().find(|column| column.is_auto);
    let go_on = auto.and_then(|auto| forms.continue_auto_values(name, &auto.name, table.rows));
    let indexes = table.indexes.iter().map(|index| {
        let unique = if index.is_unique { "UNIQUE " } else { "" };
        Finish::Define(format!(
            "CREATE {unique}INDEX {} ON {name} ({})",
            index.name,
            index.columns.join(", ")
        ))
    });
    TableFill {
        name: name.clone(),
        rows: table.rows,
        stream: vec!["file rows".to_owned(), name.clone()],
        columns: table
            .columns
            .iter()
            .map(|column| (column.name.clone(), ColumnFill::of(&column.values)))
            .collect(),
        finish: go_on
            .map(Finish::Query)
            .into_iter()
            .chain(indexes)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::workload_file::WorkloadFile;
    use plimsoll_engine::mysql::MysqlForms;
    use plimsoll_engine::postgres::PostgresForms;
    use plimsoll_engine::sqlite::SqliteForms;

    #[test]
    fn tables_are_written_in_the_forms_of_each_engine() {
        let text = r#"name = "t"
[table.a]
rows = 10
columns = [{ name = "id", type = "bigint", auto = true }, { name = "b", type = "varchar(5)", values = { letters = [1, 5] } }]
indexes = [{ columns = ["b"], unique = true }]
[table.line]
rows = 10
columns = [{ name = "a", type = "integer", values = { repeat = 5 } }, { name = "n", type = "integer", values = { cycle = 5 } }]
primary_key = ["a", "n"]
[statement.s]
sql = "SELECT b FROM a"
[event.e]
statements = ["s"]
"#;
        let file = WorkloadFile::parse("t", text).unwrap();
        let (a, line) = (&file.tables[0], &file.tables[1]);
        let postgres: &dyn SqlForms = &PostgresForms;
        let mysql: &dyn SqlForms = &MysqlForms::INNODB;
        let sqlite: &dyn SqlForms = &SqliteForms;
        for (table, forms, wanted) in [
            (
                a,
                sqlite,
                "CREATE TABLE a (id INTEGER PRIMARY KEY, b varchar(5) NOT NULL)",
            ),
            (
                a,
                mysql,
                "CREATE TABLE a (id bigint NOT NULL AUTO_INCREMENT, b varchar(5) NOT NULL, PRIMARY \
                KEY (id))",
            ),
            (
                a,
                postgres,
                "CREATE TABLE a (id BIGSERIAL, b varchar(5) NOT NULL, PRIMARY KEY (id))",
            ),
            (
                line,
                sqlite,
                "CREATE TABLE line (a integer NOT NULL, n integer NOT NULL, PRIMARY KEY (a, n))",
            ),
        ] {
            assert_eq!(create_table(table, forms, ""), wanted);
        }
        let finish = table_fill(a, postgres).finish;
        assert_eq!(finish.len(), 2);
        assert_eq!(
            finish[1],
            Finish::Define("CREATE UNIQUE INDEX a_b ON a (b)".to_owned())
        );
    }
}
