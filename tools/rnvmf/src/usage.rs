// SPDX-License-Identifier: GPL-2.0

//! Errors of the command line, printed in one line, and help.

use crate::cli::Arguments;
use crate::error::{Error, Status};
use crate::output::Format;
use clap::error::ErrorKind;
use clap::CommandFactory;
use std::process::ExitCode;

/// Prints help, the version or an error of the parser.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => Error::from(error)
                .context("standard output")
                .report(Format::Normal),
        };
    }
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into()).collect();
    Error::new(Status::Usage, explain(error, &words)).report(format(&words))
}

/// Returns the complaint of the parser, and the command that prints the matching help.
fn explain(error: &clap::Error, words: &[String]) -> String {
    let is_verb = |word: &&String| Arguments::command().find_subcommand(word).is_some();
    let verb = words.first().filter(is_verb);
    let verb = verb.map_or(String::new(), |verb| format!(" {verb}"));
    format!("{}; see rnvmf{verb} --help", complaint(error))
}

/// Returns the first paragraph of the parser's message, in one line.
pub(crate) fn complaint(error: &clap::Error) -> String {
    // The parser's message is the whole help.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no verb is given".into();
    }
    let text = error.render().to_string();
    let lines = text.trim_start_matches("error: ").lines().map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    paragraph.join(" ")
}

/// Returns the output format of a command line that the parser rejects.
fn format(words: &[String]) -> Format {
    let is_separate =
        |pair: &[String]| matches!(pair[0].as_str(), "-o" | "--output-format") && pair[1] == "json";
    let is_joined =
        |word: &String| matches!(word.as_str(), "-ojson" | "-o=json" | "--output-format=json");
    if words.windows(2).any(is_separate) || words.iter().any(is_joined) {
        Format::Json
    } else {
        Format::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn complain(line: &str) -> String {
        let words = words(line);
        let full = std::iter::once("rnvmf".to_owned()).chain(words.clone());
        let error = Arguments::try_parse_from(full).unwrap_err();
        explain(&error, &words)
    }

    #[test]
    fn one_line_says_what_is_wrong() {
        for (line, expected) in [
            (
                "list --frob",
                "unexpected argument '--frob' found; see rnvmf list --help",
            ),
            ("", "no verb is given; see rnvmf --help"),
            ("frob", "unrecognized subcommand 'frob'; see rnvmf --help"),
            (
                "connect -a 10.0.0.9",
                "the following required arguments were not provided: --nqn <NQN>; \
                 see rnvmf connect --help",
            ),
            (
                "connect -a 10.0.0.9 -n nqn.x -Q 3",
                "invalid value '3' for '--queue-size <N>': 3 is not in 16..=1024; \
                 see rnvmf connect --help",
            ),
        ] {
            assert_eq!(complain(line), expected);
        }
    }

    #[test]
    fn json_is_recognised_where_nothing_parses() {
        for line in [
            "list --frob -o json",
            "-ojson",
            "--output-format=json x",
            "-o=json",
        ] {
            assert_eq!(format(&words(line)), Format::Json, "{line}");
        }
        for line in ["list --frob", "list -o", "list json", "-o normal"] {
            assert_eq!(format(&words(line)), Format::Normal, "{line}");
        }
    }
}
