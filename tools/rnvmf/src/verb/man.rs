// SPDX-License-Identifier: GPL-2.0

//! `rnvmf man` and `rnvmf completion`, both made from the definition of the command line.

use super::print::print;
use crate::cli::{Arguments, Completion, Man};
use crate::error::{Error, Status};
use clap::CommandFactory;
use std::io::Write;

/// Prints a completion script.
pub(super) fn completion(options: &Completion, out: &mut impl Write) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(
        options.shell,
        &mut Arguments::command(),
        "rnvmf",
        &mut script,
    );
    print(out, &String::from_utf8_lossy(&script))
}

/// Prints a man page.
pub(super) fn run(options: &Man, out: &mut impl Write) -> Result<(), Error> {
    let mut command = Arguments::command();
    command.build();
    let page = match &options.verb {
        None => command,
        Some(name) => {
            let verb = command.find_subcommand(name).ok_or_else(|| {
                Error::new(Status::Usage, format!("no verb {name}; see rnvmf --help"))
            })?;
            // A built subcommand is displayed as rnvmf-connect, so its page is rnvmf-connect(1).
            verb.clone()
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page)
        .source(concat!("rnvmf ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands")
        .render(&mut roff)?;
    print(out, &String::from_utf8_lossy(&roff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use clap_complete::Shell;

    fn page(verb: Option<&str>) -> Result<String, Error> {
        let options = Man {
            verb: verb.map(str::to_owned),
        };
        let mut out = Vec::new();
        run(&options, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_verb_has_a_page() {
        for verb in Arguments::command().get_subcommands() {
            let text = page(Some(verb.get_name())).unwrap();
            assert!(text.contains(".TH rnvmf-"), "{text}");
        }
        assert!(page(None).unwrap().contains("EXIT STATUS"));
        assert_eq!(page(Some("frob")).unwrap_err().status, Status::Usage);
    }

    #[test]
    fn the_page_of_connect_tells_of_identity_and_options() {
        let text = page(Some("connect")).unwrap();
        for word in ["HOST IDENTITY", "product_uuid", "timeout", "idempotent"] {
            assert!(text.contains(word), "{word}");
        }
    }

    #[test]
    fn every_shell_has_a_script() {
        for &shell in Shell::value_variants() {
            let mut out = Vec::new();
            completion(&Completion { shell }, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("disconnect-all"), "{shell}");
        }
    }
}
