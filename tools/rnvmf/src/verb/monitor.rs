// SPDX-License-Identifier: GPL-2.0

//! `rnvmf monitor`.

use super::print;
use crate::cli::Monitor;
use crate::error::Error;
use crate::event::WaitResult;
use crate::kernel::Kernel;
use crate::render::event::MonitorLine;
use std::io::Write;

/// Print events until the user stops it.
pub(super) fn run(
    options: &Monitor,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    kernel.subscribe()?;
    print(out, &MonitorLine::Ready.render(format))?;
    loop {
        match kernel.next(None)? {
            WaitResult::Event(event) => print(out, &MonitorLine::Event(&event).render(format))?,
            WaitResult::Lost => {
                print(out, &MonitorLine::Lost.render(format))?;
                for controller in &kernel.controllers()? {
                    print(out, &MonitorLine::Controller(controller).render(format))?;
                }
                for namespace in &kernel.namespaces()? {
                    print(out, &MonitorLine::Namespace(namespace).render(format))?;
                }
            }
            WaitResult::Interrupted => return Ok(()),
            // Without a deadline there is none to pass.
            WaitResult::Discovery(..) | WaitResult::Deadline => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Format, Output};
    use crate::controller::tests::{connecting, live};
    use crate::event::Change;
    use crate::kernel::tests::MockKernel;
    use crate::namespace::tests::disk;

    #[test]
    fn tells_what_happens_and_makes_up_for_what_is_lost() {
        let mut kernel = MockKernel {
            controllers: vec![live()],
            namespaces: vec![disk()],
            ..MockKernel::default()
        };
        kernel.tell(Change::Added, connecting());
        kernel.wait_results.push_back(WaitResult::Lost);
        kernel.wait_results.push_back(WaitResult::Interrupted);
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
