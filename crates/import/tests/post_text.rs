//! Texts of posts as an author would read them: nothing that the tables beside them contradict, and
//! nothing that nobody would write.

use std::fs;
use std::path::Path;

use plimsoll_analysis::post::check::{Standing, check};
use plimsoll_analysis::post::{Part, Post, PostOptions, post};
use plimsoll_analysis::{Options as ViewOptions, View, analyse, compare};
use plimsoll_import::{Options, import};
use plimsoll_store::Store;
use plimsoll_testkit::archive;

fn view_of(path: &Path, options: &ViewOptions) -> View {
    let place = tempfile::tempdir().unwrap();
    let store = Store::new(place.path());
    let summary = import(&store, path, &Options::default()).unwrap();
    let [unit] = &summary.units[..] else {
        panic!("{} campaigns: {:?}", summary.units.len(), summary.left_out);
    };
    analyse(&[unit.campaign.load().unwrap()], options).unwrap()
}

fn written(view: &View) -> Post {
    post(view, &PostOptions::default()).unwrap()
}

/// The view of rows of a CSV: build, step, rate.
fn view_of_rows(rows: &[(&str, &str, f64)]) -> View {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("r.csv");
    let rows = rows.iter();
    let rows: String = rows
        .map(|(build, step, rate)| format!("{build},{step},qps,{rate}\n"))
        .collect();
    fs::write(&path, format!("build,step,metric,value\n{rows}")).unwrap();
    view_of(&path, &ViewOptions::default())
}

fn of_rows(rows: &[(&str, &str, f64)]) -> Post {
    written(&view_of_rows(rows))
}

/// Sentences, headings of lists, and captions and alternatives of figures: a line each.
fn text(post: &Post) -> String {
    let mut all: Vec<String> = post.sentences().iter().map(|of| of.text.clone()).collect();
    for part in post.sections.iter().flat_map(|of| &of.parts) {
        match part {
            Part::List(list) => all.push(list.heading.clone()),
            Part::Figure(figure) => all.extend([figure.caption.clone(), figure.alt.clone()]),
            Part::Text(_) | Part::Table { .. } => {}
        }
    }
    all.join("\n")
}

fn dec25(test: &str, builds: &[&str]) -> Option<Post> {
    let name = format!("import::post_text::{test}");
    let folder = archive(&name, "mytools/dec25.sb.socket.my")?;
    let options = ViewOptions {
        base: None,
        builds: builds.iter().map(|of| (*of).to_owned()).collect(),
    };
    Some(written(&view_of(&folder, &options)))
}

/// hot-points gains 27 %: what most tests lose is not the group's.
#[test]
fn a_common_result_tells_of_how_many_tests_it_is() {
    let Some(post) = dec25("a_common_result_tells_of_how_many_tests_it_is", &[]) else {
        return;
    };
    let said = text(&post);
    for line in [
        "9.5 vs 5.6, point queries: ~20% less throughput (6 of 9 tests)\n",
        // All of them.
        "9.5 vs 5.6, range queries without aggregation: ~30% less throughput\n",
        "9.5 vs 5.6, range queries with aggregation: ~25% less throughput (6 of 8 tests)\n",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
}

/// 8.0.43 and 8.0.44 differ by 7 % in the CPU of an insert, 8.4.6 and 8.4.7 by 4 % in that of a
/// count: less than that is not news. Two tests are both, and not 2 of those.
#[test]
fn what_twins_differ_by_in_a_cost_is_no_change() {
    let name = "import::post_text::what_twins_differ_by_in_a_cost_is_no_change";
    let Some(folder) = archive(name, "mytools/nov25.sb.mysql/dop1") else {
        return;
    };
    let said = text(&written(&view_of(&folder, &ViewOptions::default())));
    for line in [
        "from 8.0 to 8.4 CPU per operation (cpu/o) (+5%) and context switches per operation (cs/o) \
         (+0%) are stable",
        "from 8.4 to 9.5 CPU per operation (cpu/o) grows by 8% while",
        "CPU per operation (cpu/o) is stable from 8.0 through 9.5 (-4%)",
        "new in 9.5 vs 8.4: 2 of 32 tests are slower, both in writes, 1 is faster",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}

/// Releases of one series are called by their versions: `8.0 vs 8.0.43` compares 8.0 with itself.
#[test]
fn releases_of_one_series_are_told_apart() {
    let builds = ["my8043", "my8044"];
    let Some(post) = dec25("releases_of_one_series_are_told_apart", &builds) else {
        return;
    };
    let said = text(&post);
    assert!(!said.contains("8.0 vs"), "{said}");
    assert!(
        said.contains("from 8.0.43 to 8.0.44 throughput is stable (median -0.6%)"),
        "{said}"
    );
    assert!(!said.contains("speaks through"), "{said}");
}

/// A loss of 20 % in all tests that came with one patch release.
#[test]
fn a_regression_of_a_patch_release_is_not_its_noise() {
    let mut rows = Vec::new();
    let builds: Vec<String> = (20..40).map(|patch| format!("my80{patch}")).collect();
    let steps = ["a", "b", "c", "d", "e"];
    for (place, build) in builds.iter().enumerate() {
        for (at, step) in steps.iter().enumerate() {
            let wobble = 1.0 + 0.001 * ((place * 7 + at * 5) % 11) as f64;
            let level = if place < 10 { 1000.0 } else { 800.0 };
            rows.push((build.as_str(), *step, level * wobble));
        }
    }
    let post = of_rows(&rows);
    let said = text(&post);
    for line in [
        "8.0.39 vs 8.0.20, all tests: ~20% less throughput",
        "8.0.29 and 8.0.30 do not count as twins in all tests: all 5 tests are slower in 8.0.30",
        "18 pairs of twins: 95% of tests differ by at most 0.7% in each pair",
        "a regression loses 4% or more",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert!(!said.contains("two states"), "{said}");
    let notes = post.tables.iter().flat_map(|table| &table.groups);
    let notes = notes.flat_map(|group| &group.rows).map(|row| &row.note);
    let arrived = notes.filter(|note| note.contains("arrives in 8.0.30 and remains"));
    assert_eq!(arrived.count(), 5);
}

/// Builds of which nobody knows the product, and one build without a version.
#[test]
fn a_product_without_a_name_begins_no_caption() {
    let post = of_rows(&[
        ("x", "read", 100.0),
        ("y", "read", 80.0),
        ("x", "write", 50.0),
        ("y", "write", 60.0),
    ]);
    let said = text(&post);
    assert!(
        said.contains("\nall tests; base x; one run per build."),
        "{said}"
    );
    assert!(said.contains("(throughput for some build)"), "{said}");

    let name = "import::post_text::a_product_without_a_name_begins_no_caption";
    let Some(folder) = archive(name, "insert_benchmark_17_fields") else {
        return;
    };
    let said = text(&written(&view_of(&folder, &ViewOptions::default())));
    assert!(
        said.contains("\nl.i1, second by second; one run each."),
        "{said}"
    );
    assert!(said.contains("a row per build"), "{said}");
    assert!(said.lines().all(|line| !line.starts_with(',')), "{said}");
}

#[test]
fn metrics_that_are_similar_are_said_once_and_in_one_unit() {
    let name = "import::post_text::metrics_that_are_similar_are_said_once_and_in_one_unit";
    let Some(folder) = archive(name, "mytools/ibench.jan2021/20m") else {
        return;
    };
    let said = text(&written(&view_of(&folder, &ViewOptions::default())));
    for line in [
        "l.x: throughput +0.0%; metrics are similar: cpupq +0%, cspq +0% and wkbpi +3%",
        // The least and the largest change of a factor are factors.
        "wkbpi 0.6X to 9.8X",
        "; similar: cspq +0%\n",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    for never in ["similar; similar", "+0% to +0%", "+1% to +1%"] {
        assert!(!said.contains(never), "{never}\n{said}");
    }
    assert!(
        said.contains("cx6d.badcnf: 5.7 vs 5.6, write-heavy steps: ~1.9X the throughput (2 of 3"),
        "{said}"
    );
}

/// A note on where a change arrived is a claim, and steps that only read are not claimed.
#[test]
fn no_change_arrives_in_steps_that_are_not_claimed() {
    let name = "import::post_text::no_change_arrives_in_steps_that_are_not_claimed";
    let Some(folder) = archive(name, "mytools/nov23.u.db_bench.8x/u5") else {
        return;
    };
    let file = folder.join("sum.byrx.8x.txt");
    let post = written(&view_of(&file, &ViewOptions::default()));
    let groups = || post.tables.iter().flat_map(|table| &table.groups);
    assert!(groups().any(|group| group.title == "read-only steps"));
    for row in groups().flat_map(|group| &group.rows) {
        assert!(!row.note.contains("arrives"), "{}: {}", row.label, row.note);
    }
    let said = text(&post);
    assert!(said.contains("in 5 of 5 steps"), "{said}");
}

#[test]
fn builds_without_a_common_test_are_not_compared() {
    let post = of_rows(&[("my8043", "a", 10.0), ("my9500", "b", 10.0)]);
    assert!(
        post.lead
            .text
            .ends_with("and nothing is compared: no test has a number in two of them."),
        "{}",
        post.lead.text
    );
}

/// Numbers that nobody measures are left out, and such ratios are none.
#[test]
fn no_ratio_is_infinite() {
    let post = of_rows(&[
        ("my8043", "a", 1e-300),
        ("my9500", "a", 1e17),
        ("my8043", "b", 100.0),
        ("my9500", "b", 99.0),
    ]);
    let said = text(&post);
    assert!(said.contains("no number in both for a"), "{said}");
    assert!(
        !said.contains("inf") && !said.contains("00000000"),
        "{said}"
    );
}

/// Outputs of several thread counts: a cell each, and a ramp of its build.
#[test]
fn outputs_of_many_thread_counts_are_a_ramp() {
    let name = "import::post_text::outputs_of_many_thread_counts_are_a_ramp";
    let Some(folder) = archive(name, "mytools/feb25.pg.flat") else {
        return;
    };
    let output = "sb.o.point-query.range100.pk1.dop40";
    let output = folder.join("x.pg1023_o2nofp.x10a_c32r128.pk1").join(output);
    let output = fs::read_to_string(output).unwrap();
    let tree = tempfile::tempdir().unwrap();
    // Events in 330 s: the newer build has 1.5X the peak, with more users.
    for (build, queries) in [
        ("pg1023", [10, 40, 100, 100]),
        ("pg171", [11, 48, 140, 150]),
    ] {
        let cell = tree
            .path()
            .join(format!("x.{build}_o2nofp.x10a_c32r128.pk1"));
        fs::create_dir(&cell).unwrap();
        for (users, queries) in [1, 4, 16, 64].into_iter().zip(queries) {
            let events = format!("{}", queries * 3_300_000);
            let text = output
                .replace("324151438", &events)
                .replace("threads=40", &format!("threads={users}"))
                .replace("threads: 40", &format!("threads: {users}"));
            let file = format!("sb.o.point-query.range100.pk1.dop{users}");
            fs::write(cell.join(file), text).unwrap();
        }
    }
    let post = written(&view_of(tree.path(), &ViewOptions::default()));
    let said = text(&post);
    for line in [
        "point-query with 1, 4, 16 and 64 users",
        "1 test; 330 s each",
        "point-query: PostgreSQL 17.1 peaks at over 1.4M queries/s with 64 users (90% of it or more \
         from 16 on): 1.5X the peak of PostgreSQL 10.23",
        "at 4 users, where none is above half of its peak and throughput follows response time: \
         PostgreSQL 17.1 at 1.20 of PostgreSQL 10.23",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    let titles: Vec<&str> = post.sections.iter().map(|of| of.title.as_str()).collect();
    assert!(
        titles.contains(&"Results: point-query over users"),
        "{titles:?}"
    );
}

/// Two neighbours in patch level, of which half of the tests lose 30 %: no control says that this is
/// noise, in a post as in a comparison.
#[test]
fn what_is_compared_is_no_control_of_itself() {
    let mut rows = Vec::new();
    for (build, factor) in [("my8028", 1.0), ("my8029", 0.7)] {
        for (place, step) in ["a", "b", "c", "d", "e", "f"].iter().enumerate() {
            let rate = if place % 2 == 0 {
                100.0 * factor
            } else {
                100.0
            };
            rows.push((build, *step, rate));
        }
    }
    let view = view_of_rows(&rows);
    let said = text(&written(&view));
    let counted = "there are no changes for 3 tests and big regressions for 3 tests";
    assert!(
        said.contains(counted) && !said.contains("two states"),
        "{said}"
    );
    let words = compare((&view, 0), (&view, 1)).words.unwrap();
    assert!(
        words.groups[0].1.contains("big regressions for 3"),
        "{words:?}"
    );
}

/// A line that names a test is about it: 11 % is what an insert loses, 9.8 % what half of the losers
/// of its group do.
#[test]
fn a_percentage_is_of_the_test_that_its_line_names() {
    let name = "import::post_text::a_percentage_is_of_the_test_that_its_line_names";
    let Some(folder) = archive(name, "mytools/dec25.sb.socket.my") else {
        return;
    };
    let view = view_of(&folder, &ViewOptions::default());
    let said = "## Results: writes\n- insert gets 11% less in 9.5 than in 5.6\n- insert gets 10% \
                less in 9.5 than in 5.6\n- insert gets 20% less in 9.5 than in 8.4\n";
    let checked = check(&view, &PostOptions::default(), said).unwrap();
    let of_line = |line: usize| checked.iter().find(|of| of.line == line).unwrap();
    assert_eq!(of_line(2).standing, Standing::Found, "{checked:?}");
    // -11.0 % is 10 % to the nearest 5, as posts round.
    assert_eq!(of_line(3).standing, Standing::Found, "{checked:?}");
    // -21.9 %.
    assert_eq!(of_line(4).standing, Standing::Found, "{checked:?}");
    let wrong = said.replace("11%", "14%");
    let checked = check(&view, &PostOptions::default(), &wrong).unwrap();
    assert_eq!(checked[0].standing, Standing::NotFound, "{checked:?}");
    assert!(checked[0].instead.contains("-11.0%"), "{checked:?}");
}
