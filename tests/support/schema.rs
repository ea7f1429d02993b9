//! Checks documents against the schemas in `docs/schema`.

#![allow(clippy::expect_used, clippy::panic)]

use std::path::Path;

use serde_json::Value;

/// What is wrong with the document by the schema of that name, such as `drain-preflight`: a line for each error,
/// nothing where it is valid.
pub fn errors(schema: &str, document: &Value) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{schema}.schema.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect()
}

/// Fails the test where the document is not valid.
pub fn assert_valid(schema: &str, document: &Value) {
    let errors = errors(schema, document);
    assert!(errors.is_empty(), "not a valid {schema}:\n{}", errors.join("\n"));
}
