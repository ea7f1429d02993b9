//! `explain`: the document, and how a person reads it.

use serde::Serialize;

use super::document::API_VERSION;
use super::page::{Block, Page, Prose, Report};
use super::table::{Cell, Table};
use crate::checks::codes::Code;

/// What `explain` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Explanation`.
    pub kind: &'static str,
    /// Version of this tool.
    pub tool_version: &'static str,
    /// The code asked about, or every code.
    pub codes: Vec<Explained>,
}

/// A code, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Code.
    pub code: Code,
    /// The severities that findings with it can have.
    pub severities: Vec<&'static str>,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// When it is raised and when not, an example, how to fix it, and the rule behind it, as Markdown.
    pub page: &'static str,
}

impl Explanation {
    /// These codes, explained.
    pub fn of(codes: &[Code]) -> Self {
        let explained = |code: &Code| Explained {
            code: *code,
            severities: code.severities().collect(),
            meaning: code.meaning(),
            page: code.page(),
        };
        Self {
            api_version: API_VERSION,
            kind: "Explanation",
            tool_version: env!("CARGO_PKG_VERSION"),
            codes: codes.iter().map(explained).collect(),
        }
    }
}

impl Report for Explanation {
    fn page(&self, _: bool) -> Page {
        let [one] = self.codes.as_slice() else {
            let mut page = Page::new("Finding codes");
            let mut table = Table::new(&["CODE", "SEVERITY", "MEANING"], 2);
            for code in &self.codes {
                let cells = [code.code.as_str(), &code.severities.join(", "), code.meaning];
                table.push(cells.map(Cell::new).to_vec(), vec![]);
            }
            page.section("", [table.into()]);
            return page;
        };
        let mut page = Page::new(one.code.as_str());
        page.section("", [Prose::labelled("Severity", one.severities.join(", ")).into()]);
        page.section("", [Block::Manual(one.page)]);
        page
    }

    fn names(&self) -> Vec<String> {
        self.codes.iter().map(|code| code.code.as_str().to_owned()).collect()
    }
}
