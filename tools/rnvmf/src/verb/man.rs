// SPDX-License-Identifier: GPL-2.0

//! `rnvmf man` and `rnvmf completion`, generated from the definition of the command line.

use super::print::Printer;
use crate::cli::{Arguments, Completion, Man};
use crate::error::{Error, Status};
use clap::CommandFactory;

/// Prints a completion script.
pub(super) fn completion(options: &Completion, printer: &mut Printer<'_>) -> Result<(), Error> {
    let (mut command, mut script) = (Arguments::command(), Vec::new());
    clap_complete::generate(options.shell, &mut command, "rnvmf", &mut script);
    printer.print(&String::from_utf8_lossy(&script))
}

/// Prints a man page.
pub(super) fn man(options: &Man, printer: &mut Printer<'_>) -> Result<(), Error> {
    let mut command = Arguments::command();
    // The display name of a built subcommand is rnvmf-connect, so its page is rnvmf-connect(1).
    command.build();
    if let Some(name) = &options.verb {
        let verb = command.find_subcommand(name).cloned();
        let unknown = || Error::new(Status::Usage, format!("no verb {name}; see rnvmf --help"));
        command = verb.ok_or_else(unknown)?;
    }
    let mut roff = Vec::new();
    clap_mangen::Man::new(command)
        .source(concat!("rnvmf ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands")
        .render(&mut roff)?;
    printer.print(&String::from_utf8_lossy(&roff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use crate::verb::print::tests::Printed;
    use clap::ValueEnum;
    use clap_complete::Shell;

    fn page(verb: Option<&str>) -> Result<String, Error> {
        let options = Man {
            verb: verb.map(str::to_owned),
        };
        Printed::of(Format::Normal, |printer| man(&options, printer)).output()
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
            let options = Completion { shell };
            let printed = Printed::of(Format::Normal, |printer| completion(&options, printer));
            let text = printed.output().unwrap();
            assert!(text.contains("disconnect-all"), "{shell}");
        }
    }
}
