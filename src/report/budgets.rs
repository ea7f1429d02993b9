//! `pdb`: the document, and how a person reads it.

use serde::Serialize;

use super::document::Header;
use super::finding::{Finding, NotAssessed, Verdict};
use super::page::{Page, Report};
use super::style::Tint;
use super::table::{Cell, Table};
use super::view;
use super::words::{NAMED, some_of};

/// What `pdb` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// Common fields.
    #[serde(flatten)]
    pub header: Header,
    /// Verdict.
    pub verdict: Verdict,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// GPUStack's components with the budgets over them; with `--all` every workload of Deployments and StatefulSets too.
    pub components: Vec<ComponentBudgets>,
    /// Budgets, by namespace and name.
    pub budgets: Vec<BudgetRow>,
    /// Pods under the budgets.
    pub pods: Vec<PodBudgets>,
    /// What was not assessed.
    pub not_assessed: Vec<NotAssessed>,
}

/// The budgets over a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentBudgets {
    /// Name of the workload.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Replicas wanted; `null` where that is not known.
    pub replicas: Option<i64>,
    /// Names of the budgets of its namespace over it.
    pub budgets: Vec<String>,
}

/// A budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetRow {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// What it asks for, such as `minAvailable 2`.
    pub wants: String,
    /// `IfHealthyBudget` or `AlwaysAllow`: when pods that are not Ready may go.
    pub unhealthy_pod_eviction_policy: String,
    /// The Helm release that renders it; `null` where none is named.
    pub release: Option<String>,
    /// Workloads that it guards, `kind/name`; pods without a controller are not among them.
    pub guards: Vec<String>,
    /// Names of the pods that it selects.
    pub selects: Vec<String>,
    /// Healthy pods wanted, as the status says.
    pub desired: i64,
    /// Healthy pods counted, as the status says.
    pub healthy: i64,
    /// Pods expected, as the status says.
    pub expected: i64,
    /// Evictions that the API allows now; 0 where the status is older than the spec.
    pub allowed_now: i64,
    /// Whether it can ever allow one; `null` where that is not decidable.
    pub can_ever_allow: Option<bool>,
    /// Why.
    pub why: String,
}

/// The budgets over a pod: an eviction of one with several fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodBudgets {
    /// Pod.
    pub pod: String,
    /// Its namespace.
    pub namespace: String,
    /// Whether budgets count it as healthy.
    pub healthy: bool,
    /// Names of the budgets that select it.
    pub budgets: Vec<String>,
}

impl Report for BudgetStatus {
    fn page(&self, wide: bool) -> Page {
        let headline = view::headline(&self.header, self.verdict, &self.findings, &good(self), wide);
        let mut page = Page::new("Disruption budgets");
        let said = headline.text.clone();
        page.section("", [headline.into()]);
        page.findings(&self.findings, &said, wide);
        page.section("Budgets", [budgets(self, wide).into()]);
        page.section("Without a budget", [without(self).into()]);
        if wide {
            page.section("Pods", [pods(self).into()]);
        }
        page.not_assessed(&self.not_assessed);
        page
    }

    /// The budgets.
    fn names(&self) -> Vec<String> {
        self.budgets
            .iter()
            .map(|budget| format!("poddisruptionbudget/{}", budget.name))
            .collect()
    }
}

fn good(doc: &BudgetStatus) -> String {
    let guarding: Vec<&BudgetRow> = doc.budgets.iter().filter(|budget| !budget.selects.is_empty()).collect();
    let open = guarding.iter().filter(|budget| budget.allowed_now > 0).count();
    match (doc.budgets.len(), guarding.len()) {
        (0, _) => "There are no disruption budgets here".to_owned(),
        (_, all) if open == all => "Every disruption budget that guards pods lets one go now".to_owned(),
        (_, all) => format!("{open} of {all} disruption budgets let a pod go now; the others can, once everything under them is Ready"),
    }
}

fn budgets(doc: &BudgetStatus, wide: bool) -> Table {
    let namespaces = wide
        || doc
            .budgets
            .iter()
            .any(|budget| Some(&budget.namespace) != doc.header.install.as_ref().map(|install| &install.namespace));
    let mut headers = vec!["BUDGET", "WANTS", "HEALTHY", "NEEDED", "ALLOWED", "EVER", "GUARDS"];
    if namespaces {
        headers.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&headers, if namespaces { 2 } else { 1 });
    for budget in &doc.budgets {
        let guards = if wide {
            budget.guards.join(", ")
        } else {
            some_of(&budget.guards, NAMED)
        };
        let ever = match budget.can_ever_allow {
            Some(true) => Cell::new("yes"),
            Some(false) => Cell::new("no").tinted((!budget.guards.is_empty() || !budget.selects.is_empty()).then_some(Tint::Bad)),
            None => Cell::new("unknown").tinted(Some(Tint::Unknown)),
        };
        let mut cells = vec![
            Cell::new(&budget.name),
            Cell::new(&budget.wants),
            Cell::new(budget.healthy.to_string()),
            Cell::new(budget.desired.to_string()),
            Cell::new(budget.allowed_now.to_string()).tinted((budget.allowed_now == 0).then_some(Tint::Risk)),
            ever,
            Cell::new(guards),
        ];
        if namespaces {
            cells.insert(0, Cell::new(&budget.namespace));
        }
        let said = budget.allowed_now > 0 && !wide && !budget.wants.ends_with('%');
        table.push(cells, if said { Vec::new() } else { vec![budget.why.clone()] });
    }
    table
}

fn without(doc: &BudgetStatus) -> Table {
    let mut table = Table::new(&["WITHOUT A BUDGET", "REPLICAS", "NAMESPACE"], 1);
    for component in doc.components.iter().filter(|component| component.budgets.is_empty()) {
        table.push(
            vec![
                Cell::new(format!("{}/{}", component.kind.to_lowercase(), component.name)),
                Cell::new(component.replicas.map(|replicas| replicas.to_string()).unwrap_or_default()),
                Cell::new(&component.namespace),
            ],
            Vec::new(),
        );
    }
    table
}

fn pods(doc: &BudgetStatus) -> Table {
    let mut table = Table::new(&["NAMESPACE", "POD", "HEALTHY", "BUDGETS"], 2);
    for pod in &doc.pods {
        table.push(
            vec![
                Cell::new(&pod.namespace),
                Cell::new(&pod.pod),
                Cell::new(if pod.healthy { "yes" } else { "no" }),
                Cell::new(pod.budgets.join(", ")).tinted((pod.budgets.len() > 1).then_some(Tint::Bad)),
            ],
            Vec::new(),
        );
    }
    table
}
