//! Command lines that can be pasted.

/// How the user reaches the cluster: kubectl with the connection flags that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubectl {
    flags: Vec<String>,
}

impl Kubectl {
    /// kubectl with these flags, each quoted already where it needs it.
    pub fn new(flags: Vec<String>) -> Self {
        Self { flags }
    }

    /// A command line: kubectl, the connection flags, then the words, quoted where needed.
    pub fn line<I: IntoIterator<Item = S>, S: AsRef<str>>(&self, words: I) -> String {
        let mut line = vec!["kubectl".to_owned()];
        line.extend(self.flags.iter().cloned());
        line.extend(words.into_iter().map(|word| shell_quote(word.as_ref())));
        line.join(" ")
    }
}

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
