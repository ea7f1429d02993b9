//! Label selectors and node selectors (`k8s.io/apimachinery/pkg/labels/selector.go`,
//! `k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go`).

use crate::cluster::objects::{
    LabelSelector, Node, NodeSelector, NodeSelectorTerm, PodSpec, SelectorOperator, SelectorRequirement, StringMap,
};

/// A selector that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the selector `{selector}`: {reason}")]
pub struct SelectorError {
    /// The text as given.
    pub selector: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Whether a requirement holds for a value, or for its absence.
///
/// `NotIn` and `DoesNotExist` hold for an absent key; `Gt` and `Lt` compare 64-bit integers; an unknown operator never
/// holds.
fn holds(requirement: &SelectorRequirement, value: Option<&str>) -> bool {
    let listed = || value.is_some_and(|value| requirement.values.iter().any(|listed| listed == value));
    match requirement.operator {
        SelectorOperator::In => listed(),
        SelectorOperator::NotIn => !listed(),
        SelectorOperator::Exists => value.is_some(),
        SelectorOperator::DoesNotExist => value.is_none(),
        SelectorOperator::Gt => integers(requirement, value).is_some_and(|(value, bound)| value > bound),
        SelectorOperator::Lt => integers(requirement, value).is_some_and(|(value, bound)| value < bound),
        SelectorOperator::Unknown => false,
    }
}

fn integers(requirement: &SelectorRequirement, value: Option<&str>) -> Option<(i64, i64)> {
    match requirement.values.as_slice() {
        [bound] => Some((value?.parse().ok()?, bound.parse().ok()?)),
        _ => None,
    }
}

fn all_hold(requirements: &[SelectorRequirement], labels: &StringMap) -> bool {
    requirements
        .iter()
        .all(|requirement| holds(requirement, labels.get(&requirement.key).map(String::as_str)))
}

fn all_equal(wanted: &StringMap, labels: &StringMap) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Whether labels match a selector. An empty selector matches everything.
///
/// What an absent selector means is the caller's rule. A requirement that the API server would refuse (an unknown
/// operator, `In` without values) matches nothing.
pub fn matches(selector: &LabelSelector, labels: &StringMap) -> bool {
    let valid = |requirement: &SelectorRequirement| match requirement.operator {
        SelectorOperator::In | SelectorOperator::NotIn => !requirement.values.is_empty(),
        SelectorOperator::Exists | SelectorOperator::DoesNotExist => requirement.values.is_empty(),
        // Parsed selectors have these; label selectors of objects cannot.
        SelectorOperator::Gt | SelectorOperator::Lt => true,
        SelectorOperator::Unknown => false,
    };
    selector.match_expressions.iter().all(valid)
        && all_equal(&selector.match_labels, labels)
        && all_hold(&selector.match_expressions, labels)
}

/// Whether a selector says nothing at all.
pub fn empty(selector: &LabelSelector) -> bool {
    selector.match_labels.is_empty() && selector.match_expressions.is_empty()
}

/// Whether a node matches a node selector: terms are ORed, the requirements of a term ANDed, and a term with none
/// matches nothing.
pub fn matches_node(selector: &NodeSelector, node: &Node) -> bool {
    matches_node_labels(selector, &node.metadata.name, &node.metadata.labels)
}

/// The same for a node's labels, and its name where `matchFields` may mean it.
pub fn matches_node_labels(selector: &NodeSelector, name: &str, labels: &StringMap) -> bool {
    selector.node_selector_terms.iter().any(|term| matches_term(term, name, labels))
}

fn matches_term(term: &NodeSelectorTerm, name: &str, labels: &StringMap) -> bool {
    if term.match_expressions.is_empty() && term.match_fields.is_empty() {
        return false;
    }
    // One requirement that does not parse spoils its term (nodeSelectorRequirementsAsSelector).
    let valid = term.match_expressions.iter().all(|requirement| match requirement.operator {
        SelectorOperator::In | SelectorOperator::NotIn => !requirement.values.is_empty(),
        SelectorOperator::Exists | SelectorOperator::DoesNotExist => requirement.values.is_empty(),
        SelectorOperator::Gt | SelectorOperator::Lt => {
            matches!(requirement.values.as_slice(), [bound] if bound.parse::<i64>().is_ok())
        }
        SelectorOperator::Unknown => false,
    });
    // A field other than the name has the empty value (nodeSelectorRequirementsAsFieldSelector, `k8s.io/apimachinery/pkg/fields`).
    let fields = term.match_fields.iter().all(|requirement| {
        let value = if requirement.key == "metadata.name" { name } else { "" };
        match (requirement.operator, requirement.values.as_slice()) {
            (SelectorOperator::In, [wanted]) => value == wanted,
            (SelectorOperator::NotIn, [unwanted]) => value != unwanted,
            _ => false,
        }
    });
    valid && fields && all_hold(&term.match_expressions, labels)
}

/// Whether a pod's node selector and required node affinity both match a node (GetRequiredNodeAffinity).
pub fn node_suits(spec: &PodSpec, node: &Node) -> bool {
    all_equal(&spec.node_selector, &node.metadata.labels)
        && spec
            .affinity
            .node_affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()
            .is_none_or(|selector| matches_node(selector, node))
}

/// Parses a selector given as text, such as `a=b,c!=d,e in (x,y),!f,g`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
    let requirements = Parser {
        tokens: tokens(text),
        position: 0,
    }
    .requirements();
    match requirements {
        Ok(match_expressions) => Ok(LabelSelector {
            match_labels: StringMap::new(),
            match_expressions,
        }),
        Err(reason) => Err(SelectorError {
            selector: text.to_owned(),
            reason,
        }),
    }
}

/// Splits at operators, brackets, commas and white space; `==` and `!=` are one token.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else if is_special(first) {
            1
        } else {
            rest.find(|character: char| is_special(character) || character.is_whitespace())
                .unwrap_or(rest.len())
        };
        let (token, remaining) = rest.split_at(end);
        tokens.push(token);
        rest = remaining.trim_start();
    }
    tokens
}

fn is_special(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '<' | '>')
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.position).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<SelectorRequirement>, String> {
        let mut requirements = Vec::new();
        while self.peek().is_some() {
            requirements.push(self.requirement()?);
            match self.next() {
                None => break,
                Some(",") if self.peek().is_some() => {}
                Some(",") => return Err("nothing after the last `,`".to_owned()),
                Some(other) => return Err(format!("found `{other}` where `,` or the end was expected")),
            }
        }
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<SelectorRequirement, String> {
        let absent = self.peek() == Some("!");
        if absent {
            self.next();
        }
        let key = self.next().unwrap_or_default();
        check_key(key)?;
        let require = |operator, values| {
            Ok(SelectorRequirement {
                key: key.to_owned(),
                operator,
                values,
            })
        };
        if absent {
            return require(SelectorOperator::DoesNotExist, Vec::new());
        }
        match self.peek() {
            None | Some(",") => return require(SelectorOperator::Exists, Vec::new()),
            Some(_) => {}
        }
        match self.next() {
            Some("=" | "==") => require(SelectorOperator::In, vec![self.value()?]),
            Some("!=") => require(SelectorOperator::NotIn, vec![self.value()?]),
            Some("in") => require(SelectorOperator::In, self.values()?),
            Some("notin") => require(SelectorOperator::NotIn, self.values()?),
            Some(symbol @ (">" | "<")) => {
                let value = self.value()?;
                if value.parse::<i64>().is_err() {
                    return Err(format!("`{value}` after `{symbol}` is not an integer"));
                }
                require(
                    if symbol == ">" {
                        SelectorOperator::Gt
                    } else {
                        SelectorOperator::Lt
                    },
                    vec![value],
                )
            }
            other => Err(format!(
                "found `{}` after the key `{key}`; expected =, ==, !=, in, notin, > or <",
                other.unwrap_or_default()
            )),
        }
    }

    /// One value; a missing one is the empty value.
    fn value(&mut self) -> Result<String, String> {
        let value = match self.peek() {
            None | Some("," | ")") => "",
            Some(_) => self.next().unwrap_or_default(),
        };
        check_value(value)?;
        Ok(value.to_owned())
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Some("(") => {}
            other => return Err(format!("found `{}` where `(` was expected", other.unwrap_or_default())),
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.next() {
                Some(")") => return Ok(values),
                Some(",") => {}
                None => return Err("`(` is not closed".to_owned()),
                Some(other) => return Err(format!("found `{other}` where `,` or `)` was expected")),
            }
        }
    }
}

/// A label key: an optional DNS subdomain and `/`, and a name (`k8s.io/apimachinery/pkg/api/validate/content/kube.go`).
fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let subdomain = |text: &str| {
        text.len() <= 253
            && text.split('.').all(|part| {
                !part.is_empty()
                    && !part.starts_with('-')
                    && !part.ends_with('-')
                    && part
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            })
    };
    if !name.is_empty() && is_name(name) && prefix.is_none_or(subdomain) {
        Ok(())
    } else {
        Err(format!("`{key}` is not a label key"))
    }
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_name(value) {
        Ok(())
    } else {
        Err(format!("`{value}` is not a label value"))
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|character: char| character.is_ascii_alphanumeric())
        && text.ends_with(|character: char| character.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(text: &str) -> StringMap {
        text.split(',')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    }

    #[test]
    fn text_selectors() {
        for (selector, set, expected) in [
            ("", "", true),
            ("", "a=b", true),
            ("a", "a=b", true),
            ("a", "b=a", false),
            ("!a", "b=a", true),
            ("! a", "a=", false),
            ("a=b", "a=b", true),
            ("a==b", "a=c", false),
            ("a=", "a=", true),
            ("a=,b=c", "a=,b=c", true),
            ("a-1.b/c=d", "a-1.b/c=d", true),
            ("a<5", "a=4", true),
            ("a<5", "a=5", false),
            ("a!=b", "", true),
            ("a!=b", "a=b", false),
            ("a in (x,y)", "a=y", true),
            ("a in (x, y)", "", false),
            ("a in (in,notin)", "a=in", true),
            ("a in ()", "a=", true),
            ("a in (,x)", "a=", true),
            ("a notin (x,y)", "", true),
            ("a notin (x,y)", "a=x", false),
            ("in in (in)", "in=in", true),
            ("a>5", "a=6", true),
            ("a < 5", "a=6", false),
            ("a>5", "a=x", false),
            (" a = b , c != d , e in ( x , y ) , !f , g ", "a=b,e=x,g=1", true),
            ("a=b,c!=d,e in (x,y),!f,g", "a=b,e=x,g=1,f=1", false),
            ("app.kubernetes.io/name=x", "app.kubernetes.io/name=x", true),
        ] {
            assert_eq!(matches(&parse(selector).unwrap(), &labels(set)), expected, "{selector} {set}");
        }
    }

    #[test]
    fn bad_text_selectors() {
        for (selector, reason) in [
            ("a=b,", "nothing after the last `,`"),
            (",a", "`,` is not a label key"),
            ("a b", "found `b` after the key `a`; expected =, ==, !=, in, notin, > or <"),
            ("a=b c", "found `c` where `,` or the end was expected"),
            ("!a=b", "found `=` where `,` or the end was expected"),
            ("a in x", "found `x` where `(` was expected"),
            ("a in (x", "`(` is not closed"),
            ("a in (x y)", "found `y` where `,` or `)` was expected"),
            ("a=b=c", "found `=` where `,` or the end was expected"),
            ("a=(", "`(` is not a label value"),
            ("!", "`` is not a label key"),
            ("a/b/c=d", "`a/b/c` is not a label key"),
            ("a=é", "`é` is not a label value"),
            ("a>x", "`x` after `>` is not an integer"),
            ("-a", "`-a` is not a label key"),
            ("a./b", "`a./b` is not a label key"),
            ("-a/b", "`-a/b` is not a label key"),
            ("a-/b", "`a-/b` is not a label key"),
            ("a_b/c", "`a_b/c` is not a label key"),
            ("A/b", "`A/b` is not a label key"),
        ] {
            assert_eq!(
                parse(selector),
                Err(SelectorError {
                    selector: selector.to_owned(),
                    reason: reason.to_owned()
                })
            );
        }
    }

    fn selector(json: &str) -> LabelSelector {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn object_selectors() {
        for (json, set, expected) in [
            ("{}", "a=b", true),
            (r#"{"matchLabels":{"a":"b"}}"#, "a=b,c=d", true),
            (r#"{"matchLabels":{"a":"b"}}"#, "a=c", false),
            (r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}"#, "", true),
            (
                r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}"#,
                "a=b",
                false,
            ),
            (r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":[]}]}"#, "a=b", false),
            (r#"{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]}"#, "", true),
            (r#"{"matchExpressions":[{"key":"a","operator":"Exists"}]}"#, "", false),
            (r#"{"matchExpressions":[{"key":"a","operator":"Near"}]}"#, "a=b", false),
            (
                r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists"}]}"#,
                "a=b",
                false,
            ),
        ] {
            assert_eq!(matches(&selector(json), &labels(set)), expected, "{json} {set}");
        }
    }

    #[test]
    fn node_selectors() {
        let node = Node {
            metadata: crate::cluster::objects::Meta {
                name: "n1".to_owned(),
                labels: labels("zone=a,cores=8").into(),
                ..Default::default()
            },
            ..Default::default()
        };
        for (terms, expected) in [
            ("", false),
            ("{}", false),
            (r#"{},{"matchExpressions":[{"key":"zone","operator":"Exists"}]}"#, true),
            (
                r#"{"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]},{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]},{"key":"x","operator":"Exists"}]}"#,
                false,
            ),
            (r#"{"matchExpressions":[{"key":"cores","operator":"Gt","values":["7"]}]}"#, true),
            (r#"{"matchExpressions":[{"key":"cores","operator":"Gt","values":["8"]}]}"#, false),
            (r#"{"matchExpressions":[{"key":"cores","operator":"Lt","values":["9"]}]}"#, true),
            (
                r#"{"matchExpressions":[{"key":"cores","operator":"Lt","values":["9","10"]}]}"#,
                false,
            ),
            (r#"{"matchExpressions":[{"key":"zone","operator":"Lt","values":["9"]}]}"#, false),
            (r#"{"matchExpressions":[{"key":"none","operator":"Lt","values":["9"]}]}"#, false),
            (r#"{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}"#, true),
            (
                r#"{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}"#,
                false,
            ),
            (
                r#"{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n2"]}]}"#,
                true,
            ),
            (
                r#"{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1","n2"]}]}"#,
                false,
            ),
            (r#"{"matchFields":[{"key":"metadata.name","operator":"Exists"}]}"#, false),
            (
                r#"{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}],"matchExpressions":[{"key":"zone","operator":"DoesNotExist"}]}"#,
                false,
            ),
        ] {
            let selector: NodeSelector = serde_json::from_str(&format!(r#"{{"nodeSelectorTerms":[{terms}]}}"#)).unwrap();
            assert_eq!(matches_node(&selector, &node), expected, "{terms}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn in_and_notin_are_opposites(values in prop::collection::vec("[a-c]", 1..4), value in prop::option::of("[a-d]")) {
            let list = values.join(",");
            let set = value.map(|value| labels(&format!("k={value}"))).unwrap_or_default();
            let positive = matches(&parse(&format!("k in ({list})")).unwrap(), &set);
            prop_assert_eq!(positive, !matches(&parse(&format!("k notin ({list})")).unwrap(), &set));
        }
    }

    #[test]
    fn the_prefix_of_a_key_is_no_longer_than_a_domain_name() {
        let key = |length: usize| format!("{}/b", "a".repeat(length));
        assert!(parse(&key(253)).is_ok());
        assert!(parse(&key(254)).is_err());
    }
}
