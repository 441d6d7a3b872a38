// SPDX-License-Identifier: GPL-2.0

//! `rnvmf monitor`.

use super::print::print;
use crate::cli::Monitor;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::event::WaitResult;
use crate::render::event::MonitorLine;
use std::io::Write;

/// Prints events until the user stops it.
pub(super) fn run(
    options: &Monitor,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    kernel.subscribe()?;
    print(out, &MonitorLine::Ready.render(format))?;
    loop {
        match kernel.wait(None)? {
            WaitResult::Event(event) => print(out, &MonitorLine::Event(&event).render(format))?,
            WaitResult::EventsLost => {
                print(out, &MonitorLine::Lost.render(format))?;
                for controller in &kernel.controllers()? {
                    print(out, &MonitorLine::Controller(controller).render(format))?;
                }
                for namespace in &kernel.namespaces()? {
                    print(out, &MonitorLine::Namespace(namespace).render(format))?;
                }
            }
            WaitResult::Interrupted => return Ok(()),
            // Discoveries are another program's, and this wait has no deadline.
            WaitResult::Discovery(_) | WaitResult::Deadline => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;
    use crate::kernel::mock::MockKernel;
    use crate::model::controller::tests::{connecting, live};
    use crate::model::event::Change;
    use crate::model::namespace::tests::disk;
    use crate::output::Format;

    #[test]
    fn tells_what_happens_and_makes_up_for_what_is_lost() {
        let mut kernel = MockKernel {
            controllers: vec![live()],
            namespaces: vec![disk()],
            ..MockKernel::default()
        };
        kernel.push_event(Change::Added, connecting());
        kernel.wait_results.push_back(WaitResult::EventsLost);
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
