//! `post`: from published results to a text with its tables and figures, and a text held against
//! the results.

use std::fs;

use plimsoll_testkit::archive;

use crate::support::{Place, text};

/// A place with an archive in its store; `None` without the archive.
fn imported(test: &str, name: &str) -> Option<Place> {
    let folder = archive(&format!("cli::post::{test}"), name)?;
    let place = Place::new();
    let output = place.run(&["import", folder.to_str().unwrap()]);
    assert!(
        text(&output.stdout).contains("next: "),
        "{}",
        text(&output.stderr)
    );
    Some(place)
}

#[test]
fn a_post_is_text_tables_and_figures() {
    let test = "a_post_is_text_tables_and_figures";
    let Some(place) = imported(test, "mytools/dec25.sb.socket.my") else {
        return;
    };
    let out = place.path("post");
    let arguments = [
        "post",
        "--base",
        "my8044",
        "--builds",
        "my8044,my8407,my9500",
    ];
    let output = place.run(&[&arguments[..], &["--out", out.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        format!("post: {}/post.md\n", out.display())
    );
    let post = fs::read_to_string(out.join("post.md")).unwrap();
    assert!(
        post.contains("- from 8.0 through 9.5 throughput is stable"),
        "{post}"
    );
    // Every picture of the text is there, and is one.
    let pictures: Vec<&str> = post
        .lines()
        .filter_map(|line| {
            line.strip_prefix("![")?
                .split_once("](")?
                .1
                .strip_suffix(')')
        })
        .collect();
    assert!(pictures.len() >= 8, "{pictures:?}");
    for picture in pictures {
        let bytes = fs::read(out.join(picture)).unwrap();
        assert!(bytes.starts_with(b"\x89PNG"), "{picture}");
        let svg = fs::read_to_string(out.join(picture.replace(".png", ".svg"))).unwrap();
        assert!(svg.starts_with("<svg"), "{picture}");
    }
    let table = fs::read_to_string(out.join("tables/MySQL.relative.8.0.44.tsv")).unwrap();
    assert!(
        table.starts_with("Relative to: 8.0.44 (my8044_rel_o2nofp.z12a_c24r64)\n"),
        "{table}"
    );
    assert!(
        table.contains("\n- point queries\ncol-1\tcol-2\n"),
        "{table}"
    );

    // Each of its numbers is in the data.
    let own = out.join("post.md");
    let output = place.run(&[&arguments[..], &["--check", own.to_str().unwrap()]].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let (numbers, rest) = said.split_once(" numbers: ").unwrap();
    assert!(rest.starts_with(&format!("{numbers} found, 0 ")), "{said}");
    assert!(numbers.parse::<u32>().unwrap() > 300, "{said}");

    // The text alone is the same.
    let output = place.run(&[&arguments[..], &["--format", "md"]].concat());
    assert_eq!(text(&output.stdout), post);
}

#[test]
fn a_text_is_held_against_the_results() {
    let test = "a_text_is_held_against_the_results";
    let Some(place) = imported(test, "mytools/dec25.sb.socket.my") else {
        return;
    };
    let draft = place.path("draft.md");
    let check = |draft_text: &str| {
        fs::write(&draft, draft_text).unwrap();
        place.run(&["post", "--check", draft.to_str().unwrap()])
    };
    let right = "Results: writes\n- from 5.6 to 5.7 there are big improvements for 9 tests\n";
    let output = check(right);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(
        text(&output.stdout).starts_with("1 number: 1 found"),
        "{}",
        text(&output.stdout)
    );
    let output = check(&right.replace("9 tests", "10 tests"));
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stdout);
    assert!(
        said.starts_with("line 2: 10 tests: not found: the campaign has 9 of 10: faster\n"),
        "{said}"
    );

    for (arguments, wanted) in [
        (&["post", "--base", "my9600"][..], "\"my9600\""),
        (&["post", "--telling", "writes"], "such as 'writes=insert'"),
        (
            &["post", "--telling", "writes=insrt"],
            "did you mean \"insert\"",
        ),
        (&["post", "--check", "none.md"], "none.md"),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(wanted),
            "{}",
            text(&output.stderr)
        );
    }
}

/// A draft that somebody worked on, or a text that was there before, is not written over.
#[test]
fn a_text_that_was_there_is_kept() {
    let test = "a_text_that_was_there_is_kept";
    let Some(place) = imported(test, "mytools/feb25.pg.flat") else {
        return;
    };
    let out = place.path("post");
    fs::create_dir(&out).unwrap();
    let own = out.join("post.md");
    let arguments = ["post", "--out", out.to_str().unwrap()];
    for (number, draft) in ["mine", "edited"].iter().enumerate() {
        fs::write(&own, draft).unwrap();
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let kept = out.join(format!("post.{}.md", number + 1));
        assert_eq!(fs::read_to_string(&kept).unwrap(), *draft);
        assert!(
            text(&output.stderr).contains(&format!("kept as {}", kept.display())),
            "{}",
            text(&output.stderr)
        );
    }
    // The same text moves nothing.
    let output = place.run(&arguments);
    assert_eq!(text(&output.stderr), "");
    assert!(!out.join("post.3.md").exists());
}
