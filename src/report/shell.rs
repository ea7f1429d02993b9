//! Command lines that can be pasted.

/// How the user reaches the cluster: kubectl with the connection flags that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubectl {
    flags: Vec<String>,
}

impl Kubectl {
    /// kubectl with these flags, each already a word of its own.
    pub fn new(flags: Vec<String>) -> Self {
        Self { flags }
    }

    /// A command line: kubectl, the connection flags, then the words, quoted where needed.
    pub fn line<I: IntoIterator<Item = S>, S: AsRef<str>>(&self, words: I) -> String {
        let mut line = vec!["kubectl".to_owned()];
        line.extend(self.flags.iter().cloned());
        line.extend(words.into_iter().map(|word| quote(word.as_ref())));
        line.join(" ")
    }
}

/// A word for a POSIX shell, quoted where it holds anything but harmless characters.
pub fn quote(word: &str) -> String {
    let harmless = |character: char| character.is_ascii_alphanumeric() || "-_./:=,@%+".contains(character);
    if !word.is_empty() && word.chars().all(harmless) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
