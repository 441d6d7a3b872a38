// SPDX-License-Identifier: GPL-2.0

//! Programs of other packages that print the state of the system as JSON.

use crate::doctor::snapshot::Probed;
use crate::error::io_message;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// A program that prints JSON.
pub(super) struct Tool {
    program: &'static str,
    /// The Debian package that contains it.
    package: &'static str,
}

/// Prints network interfaces and routes.
pub(super) const IP: Tool = Tool {
    program: "ip",
    package: "iproute2",
};

/// Prints RDMA devices.
pub(super) const RDMA: Tool = Tool {
    program: "rdma",
    package: "iproute2",
};

/// Prints nftables rules.
pub(super) const NFT: Tool = Tool {
    program: "nft",
    package: "nftables",
};

impl Tool {
    /// Runs the program and deserializes its output.
    ///
    /// If the program fails, the error is its name and the first line of its standard error output.
    pub(super) fn run<T: DeserializeOwned>(&self, arguments: &[&str]) -> Probed<T> {
        let program = self.program;
        let path = std::env::var("PATH").ok().filter(|path| !path.is_empty());
        let path = path.unwrap_or_else(|| "/usr/bin:/bin".into());
        let output = Command::new(program)
            .args(arguments)
            .env("LC_ALL", "C")
            // The PATH of users other than root may lack the directories of system programs.
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!(
                    "{program} is not installed: install the package {}",
                    self.package
                )
            }
            _ => format!("{program}: {}", io_message(&error)),
        })?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let first = text.lines().next().unwrap_or("no error message");
            return Err(format!("{program}: {first}"));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{program}: unexpected output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &'static str, argument: &str) -> Probed<Vec<u32>> {
        let package = "frobutils";
        Tool { program, package }.run(&[argument])
    }

    #[test]
    fn output_is_deserialized() {
        assert_eq!(run("echo", "[1, 2]"), Ok(vec![1, 2]));
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let why = "rnvmf-frob is not installed: install the package frobutils";
        assert_eq!(run("rnvmf-frob", "x"), Err(why.into()));
    }

    #[test]
    fn a_failure_is_the_first_line_of_the_error_output() {
        let why = "ls: cannot access '/no/such/file': No such file or directory";
        assert_eq!(run("ls", "/no/such/file"), Err(format!("ls: {why}")));
        assert_eq!(run("false", "x"), Err("false: no error message".into()));
    }

    #[test]
    fn odd_output_is_an_error() {
        let deep = "[".repeat(100_000);
        for text in ["", "{}", "[-1]", "[1,", "[1] x", "null", &deep] {
            let why = run("echo", text).unwrap_err();
            assert!(why.starts_with("echo: unexpected output: "), "{why}");
        }
    }
}
