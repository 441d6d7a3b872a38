// SPDX-License-Identifier: GPL-2.0

//! `rnvmf monitor`.

use super::print::Printer;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::event::WaitResult;
use crate::render::event::MonitorLine;

/// Prints events until SIGINT or SIGTERM.
pub(super) fn run(kernel: &mut impl Kernel, printer: &mut Printer<'_>) -> Result<(), Error> {
    let mut print = |line: MonitorLine<'_>| printer.print(&line.render(printer.format));
    kernel.subscribe()?;
    print(MonitorLine::Ready)?;
    loop {
        match kernel.wait(None)? {
            WaitResult::Event(event) => print(MonitorLine::Event(&event))?,
            WaitResult::EventsLost => {
                print(MonitorLine::Lost)?;
                for controller in &kernel.controllers()? {
                    print(MonitorLine::Controller(controller))?;
                }
                for namespace in &kernel.namespaces()? {
                    print(MonitorLine::Namespace(namespace))?;
                }
            }
            WaitResult::Interrupted => return Ok(()),
            // Other programs start discoveries, and this wait has no deadline.
            WaitResult::Discovery(_) | WaitResult::Deadline => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mock::MockKernel;
    use crate::model::controller::tests::{connecting, live};
    use crate::model::event::Change;
    use crate::model::namespace::tests::disk;
    use crate::output::Format;
    use crate::verb::print::tests::Printed;

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
        let printed = Printed::of(Format::Normal, |printer| run(&mut kernel, printer));
        assert_eq!(
            printed.output().unwrap(),
            "ready\n\
             ctrl-add rnvmf0 connecting 10.0.0.9:4420 nqn.2014-08.org.example:disk\n\
             lost\n\
             ctrl rnvmf0 live 10.0.0.9:4420 nqn.2014-08.org.example:disk\n\
             ns rnvmf0n1 nsid 1 1.07 GB\n"
        );
    }
}
