// SPDX-License-Identifier: GPL-2.0

//! `rnvmf discover`: the kernel only starts to ask; an event tells when it has the log.

use super::connect::{deadline, late, target};
use super::print;
use crate::address::Endpoint;
use crate::cli::{Discover, DiscoveryCtrlArgs, Format};
use crate::discovery::DiscoveryLog;
use crate::error::Error;
use crate::event::WaitResult;
use crate::host::SystemEnv;
use crate::kernel::{Kernel, Target};
use crate::render::discovery;
use std::io::Write;

/// Print the log of a discovery controller.
pub(super) fn run(
    options: &Discover,
    env: &SystemEnv,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let DiscoveryCtrlArgs {
        traddr,
        nqn,
        fabrics,
    } = &options.controller;
    let log = target(traddr, nqn, fabrics, env)
        .and_then(|target| ask(&target, kernel))
        .map_err(|error| {
            let place = Endpoint::new(traddr, fabrics.trsvcid);
            error.context(format_args!("discover at {place}"))
        })?;
    let text = match options.output.format {
        Format::Normal => discovery::normal(&log),
        Format::Json => discovery::json(&log),
    };
    print(out, &text)
}

/// The kernel bounds how long this takes; it ends what it does when the program does.
fn ask(target: &Target, kernel: &mut impl Kernel) -> Result<DiscoveryLog, Error> {
    // Before the discovery, so that its end cannot be missed.
    kernel.subscribe()?;
    let id = kernel.discover(target, None)?;
    let deadline = deadline(target);
    loop {
        match kernel.next(Some(deadline))? {
            WaitResult::Discovery(over, _) if over != id => (),
            WaitResult::Discovery(_, Some(error)) => return Err(*error),
            WaitResult::Discovery(_, None) | WaitResult::Lost => {
                if let Some(log) = kernel.log(id)? {
                    return Ok(log);
                }
            }
            WaitResult::Event(_) => (),
            WaitResult::Interrupted => return Err(Error::failed("interrupted")),
            // The kernel's own limit did not hold.
            WaitResult::Deadline => return Err(late()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Verb};
    use crate::discovery::tests::{log, subsystem};
    use crate::kernel::tests::MockKernel;
    use clap::Parser;

    fn play(kernel: &mut MockKernel, more: &[&str]) -> Result<String, Error> {
        let line = ["rnvmf", "discover", "-a", "10.0.0.9", "-q", "nqn.h", "-I"];
        let line = line
            .iter()
            .chain(&["00112233-4455-6677-8899-aabbccddeeff"])
            .chain(more);
        let options = match Arguments::try_parse_from(line).unwrap().verb {
            Verb::Discover(options) => options,
            other => panic!("{other:?}"),
        };
        let mut out = Vec::new();
        run(&options, &SystemEnv::default(), kernel, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn kernel(
        wait_results: Vec<WaitResult>,
        logs: Vec<Result<Option<DiscoveryLog>, Error>>,
    ) -> MockKernel {
        MockKernel {
            wait_results: wait_results.into(),
            logs: logs.into(),
            ..MockKernel::default()
        }
    }

    fn found() -> Result<Option<DiscoveryLog>, Error> {
        Ok(Some(log(vec![subsystem("nqn.x", "10.0.0.9")])))
    }

    #[test]
    fn the_log_is_printed_when_it_is_there() {
        let wait_results = vec![
            WaitResult::Discovery(7, None),
            WaitResult::Lost,
            WaitResult::Discovery(0, None),
        ];
        let mut kernel = kernel(wait_results, vec![Ok(None), found()]);
        let text = play(&mut kernel, &[]).unwrap();
        assert!(
            text.starts_with("1 record, generation 5\n\nrecord 0\n"),
            "{text}"
        );
        let [asked] = &kernel.asked[..] else {
            panic!("asked not once");
        };
        assert_eq!(asked.subsysnqn, "nqn.2014-08.org.nvmexpress.discovery");
        assert_eq!((asked.trsvcid, asked.connect_timeout), (4420, 10_000));
    }

    #[test]
    fn options_reach_the_kernel() {
        let mut kernel = kernel(vec![WaitResult::Discovery(0, None)], vec![found()]);
        let more = [
            "-s",
            "8009",
            "-n",
            "nqn.own",
            "--timeout",
            "3",
            "-o",
            "json",
        ];
        let text = play(&mut kernel, &more).unwrap();
        assert!(text.starts_with("{\"schema\":1,\"genctr\":5"), "{text}");
        let asked = &kernel.asked[0];
        assert_eq!((asked.trsvcid, asked.connect_timeout), (8009, 3000));
        assert_eq!(asked.subsysnqn, "nqn.own");
    }

    #[test]
    fn what_goes_wrong_is_told_with_the_place() {
        let refused = Err(Error::failed("rejected"));
        // After it the kernel may not be there any more to be asked.
        let failed = WaitResult::Discovery(0, Some(Error::failed("cancelled").into()));
        for (result, log, message) in [
            (failed, found(), "cancelled"),
            (WaitResult::Discovery(0, None), refused, "rejected"),
            (WaitResult::Interrupted, found(), "interrupted"),
            (
                WaitResult::Deadline,
                found(),
                "the kernel did not finish in time",
            ),
        ] {
            let mut kernel = kernel(vec![result], vec![log]);
            let error = play(&mut kernel, &[]).unwrap_err();
            assert_eq!(
                error.message,
                format!("discover at 10.0.0.9:4420: {message}")
            );
        }
    }
}
