//! The command line: arguments as they are typed, and nothing that they cause.

pub mod connection;
