//! How what is not known is taken to be.
//!
//! The best and the worst of everything do not bound what can happen: a replacement that only may be created can take
//! the room that another one needs, where that one's other node refuses it. So each class of unknowns is taken both
//! ways, in every combination. Within a class all are taken alike.

use std::collections::BTreeSet;

/// A class of what is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Budgets that were not read, or whose numbers were not.
    Budgets,
    /// Nodes that may take a pod.
    Nodes,
    /// Whether an owner makes its pod again, and whether it may be created.
    Replacements,
    /// Whether calls reach somebody: webhooks that may be called or may be down, components that may run.
    Calls,
}

/// One way to take what is not known. The drain is played once for each; where the verdicts differ it is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assume {
    worst: BTreeSet<Class>,
    one_at_a_time: bool,
}

impl Assume {
    /// Every way to take these classes: the best of all first, the worst of all last.
    pub fn ways(classes: &BTreeSet<Class>) -> Vec<Self> {
        let mut ways = vec![Self::default()];
        for class in classes {
            let with = |way: &Self, one_at_a_time| {
                let mut way = way.clone();
                if one_at_a_time {
                    way.one_at_a_time = true;
                } else {
                    way.worst.insert(*class);
                }
                way
            };
            let mut more = Vec::new();
            if *class == Class::Budgets {
                more.extend(ways.iter().map(|way| with(way, true)));
            }
            more.extend(ways.iter().map(|way| with(way, false)));
            ways.extend(more);
        }
        ways
    }

    /// Whether the worst is assumed: nodes refuse what may not fit, budgets allow nothing, what may be refused is.
    pub fn worst(&self, class: Class) -> bool {
        self.worst.contains(&class)
    }

    /// Whether budgets that were not read let one pod of a workload go at a time. Else, and unless the worst of them
    /// is assumed, they do not exist.
    pub fn one_at_a_time(&self) -> bool {
        self.one_at_a_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_from_the_best_to_the_worst() {
        let ways = Assume::ways(&BTreeSet::from([Class::Budgets, Class::Nodes, Class::Calls]));
        assert_eq!(ways.len(), 12);
        assert_eq!(ways[0], Assume::default());
        let last = &ways[11];
        assert!(last.worst(Class::Budgets) && last.worst(Class::Nodes) && last.worst(Class::Calls) && !last.one_at_a_time());
        assert!(!last.worst(Class::Replacements));
        assert!(ways.iter().enumerate().all(|(index, way)| !ways[..index].contains(way)));
        assert!(ways.iter().any(|way| way.one_at_a_time() && way.worst(Class::Nodes)));
        assert_eq!(Assume::ways(&BTreeSet::new()), [Assume::default()]);
    }
}
