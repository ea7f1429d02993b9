//! Quantities, selectors, times, holder identities: text that clusters and people give.
#![no_main]

use gpustack_ha::kubernetes::quantity::Quantity;
use gpustack_ha::kubernetes::{leases, selectors};
use gpustack_ha::report::text::harmless;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(quantity) = text.parse::<Quantity>() {
        assert_eq!(quantity.to_string().parse::<Quantity>().ok(), Some(quantity), "{text:?}");
    }
    if let Ok(selector) = selectors::parse(text) {
        let _ = selectors::matches(&selector, &[("app".to_owned(), text.to_owned())].into());
    }
    let _ = leases::sanitized(text);
    let shown = harmless(text, false);
    assert!(!shown.chars().any(char::is_control), "{text:?}");
});
