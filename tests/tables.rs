//! The tables of `docs/` name states that are there and that show what the tables say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What is expected of a state, or of a case of one: its verdict, findings and reports.
struct Expected {
    verdict: String,
    findings: Vec<String>,
    absent: Vec<String>,
    reports: BTreeSet<String>,
    /// Findings that views must have and must not have, by view.
    views: BTreeMap<String, (Vec<String>, Vec<String>)>,
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The text of a code span, or nothing.
fn code(cell: &str) -> &str {
    cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or_default()
}

/// The cells of all rows of a page, without the headers.
fn rows(page: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root(page)).expect(page);
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: Option<&&str>| line.is_some_and(|line| line.starts_with("|---"));
    (0..lines.len())
        .filter(|&index| lines[index].starts_with('|') && !is_rule(lines.get(index)) && !is_rule(lines.get(index + 1)))
        .map(|index| {
            let cells = lines[index].trim().trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    // A finding of a case may be `code: severity`.
    let text = |item: &Value| match item {
        Value::Object(fields) => fields.keys().next().cloned(),
        other => other.as_str().map(str::to_owned),
    };
    items.filter_map(text).collect()
}

fn expected(of: &Value, reports: &Value) -> Expected {
    let codes = |of: &Value| (strings(&of["findings"]), strings(&of["absent"]));
    let asked = of["views"].as_object().into_iter().flatten();
    let mut views: BTreeMap<String, _> = asked.map(|(view, viewed)| (view.clone(), codes(viewed))).collect();
    if let Some(command) = of["ask"][0].as_str() {
        views.insert(command.to_owned(), codes(of));
    }
    Expected {
        views,
        verdict: of["verdict"].as_str().unwrap_or_default().to_owned(),
        findings: strings(&of["findings"]),
        absent: strings(&of["absent"]),
        reports: strings(reports).into_iter().collect(),
    }
}

/// By name: the states of the control plane, and as `FILE: CASE` the questions asked about clusters in files.
fn states() -> BTreeMap<String, Expected> {
    let mut states = BTreeMap::new();
    for folder in ["tests/control_plane/states", "tests/clusters"] {
        for entry in fs::read_dir(root(folder)).expect(folder) {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a state");
            let first = serde_saphyr::from_multiple::<Value>(&text).expect("YAML").swap_remove(0);
            for (case, asked) in first["cases"].as_object().into_iter().flatten() {
                states.insert(format!("{name}: {case}"), expected(asked, &asked["reports"]));
            }
            if first["expect"].is_object() {
                states.insert(name, expected(&first["expect"], &first["reports"]));
            }
        }
    }
    states
}

/// Where the links of a cell lead.
fn links(cell: &str) -> BTreeSet<String> {
    let ends = cell.split("](").skip(1);
    ends.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn every_public_report_has_the_verdict_of_its_state() {
    let states = states();
    let mut told: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let rows = rows("docs/reports.md");
    assert!(!rows.is_empty());
    let mut reports = BTreeSet::new();
    for row in &rows {
        let (report, state) = (&row[0], &row[1]);
        if !report.is_empty() {
            reports = links(report);
        }
        assert!(!reports.is_empty(), "no link: {row:?}");
        let (name, expected) = states
            .get_key_value(code(state))
            .unwrap_or_else(|| panic!("no such state: {state}"));
        match &row[2..] {
            [verdict, _note] => assert_eq!(&expected.verdict, verdict, "{state}"),
            [view, finding, _note] => {
                let (there, absent) = expected.views.get(code(view)).unwrap_or_else(|| panic!("{state} asks no {view}"));
                match code(finding) {
                    "" => assert!(finding == "none" && !absent.is_empty(), "{row:?}"),
                    finding => assert!(there.iter().any(|code| code == finding), "{row:?}"),
                }
            }
            _ => panic!("{row:?}"),
        }
        told.entry(name).or_default().extend(reports.iter().cloned());
    }
    for (name, expected) in &states {
        let told = told.remove(name.as_str()).unwrap_or_default();
        assert_eq!(expected.reports, told, "the reports of {name}, in its file and in the table");
    }
}

/// Files under `src/kubernetes` that hold no rule.
const NO_RULES: [&str; 3] = [
    "src/kubernetes/mod.rs",
    "src/kubernetes/testing.rs",
    "src/kubernetes/scheduling/testing.rs",
];

fn rust_files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else {
            let path = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("a file of the package");
            found.insert(path.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn every_rule_is_shown_by_a_state_and_silent_in_another() {
    let states = states();
    let mut files = BTreeSet::new();
    rust_files(&root("src/kubernetes"), &mut files);
    for row in &rows("docs/rules.md") {
        let [_rule, file, finding, shown, silent] = &row[..] else {
            panic!("{row:?}")
        };
        let links = links(file);
        let path = links
            .first()
            .and_then(|link| link.strip_prefix("../"))
            .unwrap_or_else(|| panic!("no file: {row:?}"));
        assert!(root(path).is_file(), "{path}");
        files.remove(path);
        let expected = |cell| states.get(code(cell)).unwrap_or_else(|| panic!("no such state: {cell}"));
        assert_ne!(shown, silent);
        let (shows, quiet) = (expected(shown), expected(silent));
        if !finding.is_empty() {
            let finding = code(finding).to_owned();
            assert!(shows.findings.contains(&finding), "{shown} does not expect {finding}");
            assert!(quiet.absent.contains(&finding), "{silent} does not exclude {finding}");
        }
    }
    let missing: Vec<&String> = files.iter().filter(|file| !NO_RULES.contains(&file.as_str())).collect();
    assert!(missing.is_empty(), "rules without a row: {missing:?}");
}
