// SPDX-License-Identifier: GPL-2.0

//! `rnvmf monitor`.

use super::print;
use crate::cli::Monitor;
use crate::error::Error;
use crate::event::Notice;
use crate::kernel::Kernel;
use crate::render::event::Line;
use std::io::Write;

/// Print events until the user stops it.
pub(super) fn run(
    options: &Monitor,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    kernel.subscribe()?;
    print(out, &Line::Ready.render(format))?;
    loop {
        match kernel.next(None)? {
            Notice::Event(event) => print(out, &Line::Event(&event).render(format))?,
            Notice::Lost => {
                print(out, &Line::Lost.render(format))?;
                for controller in &kernel.controllers()? {
                    print(out, &Line::Controller(controller).render(format))?;
                }
                for namespace in &kernel.namespaces()? {
                    print(out, &Line::Namespace(namespace).render(format))?;
                }
            }
            Notice::Interrupted => return Ok(()),
            // Without a deadline there is none to pass.
            Notice::Discovered(..) | Notice::Deadline => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Format, Output};
    use crate::controller::tests::{connecting, live};
    use crate::event::Change;
    use crate::kernel::tests::Script;
    use crate::namespace::tests::disk;

    #[test]
    fn tells_what_happens_and_makes_up_for_what_is_lost() {
        let mut kernel = Script {
            controllers: vec![live()],
            namespaces: vec![disk()],
            ..Script::default()
        };
        kernel.tell(Change::Added, connecting());
        kernel.notices.push_back(Notice::Lost);
        kernel.notices.push_back(Notice::Interrupted);
        let options = Monitor {
            output: Output {
                format: Format::Normal,
            },
        };
        let mut out = Vec::new();
        run(&options, &mut kernel, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "ready\n\
             ctrl-add rnvmf0 connecting 10.0.0.9:4420 nqn.2014-08.org.example:disk\n\
             lost\n\
             ctrl rnvmf0 live 10.0.0.9:4420 nqn.2014-08.org.example:disk\n\
             ns rnvmf0n1 nsid 1 1.07 GB\n"
        );
    }
}
