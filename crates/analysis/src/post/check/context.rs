//! What a line of text is about: a group, a test, two releases, a metric.

use super::super::costs::Cost;
use super::super::material::{Group, Subject};

/// What the lines so far have set.
pub(super) struct Context<'a> {
    subjects: &'a [Subject],
    subject: usize,
    group: Option<usize>,
    /// An index into the subject's tests.
    test: Option<usize>,
    /// Whether the group's summary has begun.
    has_summary: bool,
}

/// A part of a line with one metric.
pub(super) struct Clause<'a> {
    pub text: String,
    pub subject: Option<&'a Subject>,
    pub group: Option<&'a Group>,
    pub test: Option<usize>,
    /// Whether its own line names the test.
    pub is_named: bool,
    /// Places of releases, the older first; `None` where the line names none, or more than two.
    pub pair: Option<[usize; 2]>,
    /// `None` is throughput.
    pub cost: Option<Cost>,
}

impl<'a> Context<'a> {
    pub fn new(subjects: &'a [Subject]) -> Self {
        Self {
            subjects,
            subject: 0,
            group: None,
            test: None,
            has_summary: false,
        }
    }

    /// Names with digits in them, longest first.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for subject in self.subjects {
            names.extend(subject.tests.iter().map(|test| test.name.clone()));
            for (place, release) in subject.releases.iter().enumerate() {
                names.extend([
                    release.name.clone(),
                    release.label.clone(),
                    subject.name(place),
                ]);
            }
            names.extend([subject.title(), subject.config.clone(), "9.x".to_owned()]);
        }
        names.retain(|name| name.contains(|c: char| c.is_ascii_digit()));
        names.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        names.dedup();
        names
    }

    /// Takes from a line what it sets for those below it.
    pub fn enter(&mut self, line: &str) {
        let lower = line.to_lowercase();
        let Some(subject) = self.subjects.get(self.subject) else {
            return;
        };
        let is_heading = lower.contains("results:") || line.starts_with('#');
        if is_heading {
            if let Some(other) = self.named_subject(line) {
                self.subject = other;
            }
            let subject = &self.subjects[self.subject];
            let titled = |group: &Group| lower.trim_end().ends_with(&group.title.to_lowercase());
            self.group = subject.groups.iter().position(titled);
            (self.test, self.has_summary) = (None, false);
        }
        if lower.trim_matches(['*', ' ', '#', ':']) == "summary" {
            // A heading that got lost: the next group.
            if self.has_summary {
                self.group = self.group.map(|group| group + 1);
            }
            self.has_summary = true;
            self.test = None;
        }
        if lower.contains("using") && lower.contains("test") {
            let named = |name: &str| line.split(' ').any(|word| word == name);
            let test = subject.tests.iter().position(|test| named(&test.name));
            if let Some(test) = test {
                self.test = Some(test);
                let groups = &self.subjects[self.subject].groups;
                let holds = |group: &Group| group.tests.contains(&test);
                self.group = groups.iter().position(holds).or(self.group);
            }
        }
    }

    fn named_subject(&self, line: &str) -> Option<usize> {
        let titles = self.subjects.iter().map(Subject::title);
        titles
            .enumerate()
            .filter(|(_, title)| line.contains(title.as_str()))
            .max_by_key(|(_, title)| title.len())
            .map(|(place, _)| place)
    }

    /// The parts of a line, each with its metric; the releases are those of the whole line.
    pub fn clauses(&self, line: &str) -> Vec<Clause<'a>> {
        let subject = self.subjects.get(self.subject);
        let pair = subject.and_then(|subject| pair(subject, line));
        let group = subject.and_then(|subject| subject.groups.get(self.group?));
        let named = subject.and_then(|subject| {
            let is_named = |name: &str| {
                let mut words = line.split([' ', ',', ':', '(', ')']);
                words.any(|word| word == name)
            };
            subject.tests.iter().position(|test| is_named(&test.name))
        });
        let mut cost = None;
        let parts = line.split(" while ");
        parts
            .map(|text| {
                cost = cost_of(text).or(cost);
                Clause {
                    text: text.to_owned(),
                    subject,
                    group,
                    test: named.or(self.test),
                    is_named: named.is_some(),
                    pair,
                    cost,
                }
            })
            .collect()
    }
}

fn cost_of(text: &str) -> Option<Cost> {
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["context switch", "cs/o", "cspq"]) {
        Some(Cost::Switches)
    } else if has(&["cpu"]) {
        Some(Cost::Cpu)
    } else if has(&["written", "wkb"]) {
        Some(Cost::Written)
    } else if has(&["r/o", "reads from storage"]) {
        Some(Cost::Reads)
    } else {
        None
    }
}

/// The two releases that a line names; one alone stands against the base.
fn pair(subject: &Subject, line: &str) -> Option<[usize; 2]> {
    let mut places: Vec<usize> = Vec::new();
    let separators = |c: char| !(c.is_alphanumeric() || ".-_".contains(c));
    for word in line.split(separators) {
        let word = word.trim_end_matches('.');
        let release = (0..subject.releases.len()).find(|place| {
            subject.releases[*place].name == word || subject.releases[*place].label == word
        });
        let series = || {
            let speakers = subject.speakers.iter().copied();
            let mut speakers = speakers.filter(|place| {
                let major = word.strip_suffix(".x");
                let name = &subject.releases[*place].name;
                subject.name(*place) == word
                    || major.is_some_and(|of| name.split('.').next() == Some(of))
            });
            speakers.next_back()
        };
        if let Some(place) = release.or_else(series)
            && !places.contains(&place)
        {
            places.push(place);
        }
    }
    places.sort_unstable();
    match places[..] {
        [a, b] => Some([a, b]),
        [one] if one != subject.base => Some([subject.base.min(one), subject.base.max(one)]),
        [] => Some([subject.base, subject.newest()]),
        _ => None,
    }
}
