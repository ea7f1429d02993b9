//! Words for a shell to paste.

/// Quotes a word for a POSIX shell, where it needs it.
pub fn shell_quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::shell_quote;

    #[test]
    fn quotes_only_what_needs_it() {
        assert_eq!(shell_quote("cp-1.example.com"), "cp-1.example.com");
        assert_eq!(shell_quote("arn:aws:eks:eu:1:cluster/x"), "arn:aws:eks:eu:1:cluster/x");
        assert_eq!(shell_quote(""), "''");
        assert_eq!(shell_quote("a b"), "'a b'");
        assert_eq!(shell_quote("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(shell_quote("~/k"), "'~/k'");
    }
}
