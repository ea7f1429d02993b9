//! Checks documents against the schemas in `docs/schema`.

#![allow(clippy::expect_used, clippy::panic)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use jsonschema::{Resource, Validator};
use serde_json::Value;

thread_local! {
    /// Building one takes longer than most questions.
    static VALIDATORS: RefCell<BTreeMap<String, Validator>> = const { RefCell::new(BTreeMap::new()) };
}

/// What is wrong with the document by the schema of that name, such as `drain-preflight`: a line for each error,
/// nothing where it is valid.
pub fn errors(schema: &str, document: &Value) -> Vec<String> {
    VALIDATORS.with_borrow_mut(|validators| {
        validators
            .entry(schema.to_owned())
            .or_insert_with(|| validator(schema))
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path))
            .collect()
    })
}

/// The schema of that name.
pub fn read(schema: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{schema}.schema.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn validator(schema: &str) -> Validator {
    let common = read("common");
    let name = common["$id"].as_str().expect("an id").to_owned();
    let common = Resource::from_contents(common).expect("a schema");
    jsonschema::options()
        .with_resource(name, common)
        .build(&read(schema))
        .expect("the schema is one")
}

/// Fails the test where the document is not valid.
pub fn assert_valid(schema: &str, document: &Value) {
    let errors = errors(schema, document);
    assert!(errors.is_empty(), "not a valid {schema}:\n{}", errors.join("\n"));
}
