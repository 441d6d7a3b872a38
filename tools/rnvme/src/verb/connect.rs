// SPDX-License-Identifier: GPL-2.0

//! `rnvme connect`: the kernel only starts to connect; the events tell how it went.

use super::departure::{self, End};
use super::print;
use crate::address::{resolve, Address, Endpoint};
use crate::cli::{Connect, Format};
use crate::controller::Controller;
use crate::error::{Error, Status};
use crate::event::{Change, Event, Notice};
use crate::host::Places;
use crate::kernel::{Kernel, Made, Wish};
use crate::render::json;
use crate::uapi::CtrlState;
use serde::Serialize;
use std::io::Write;
use std::time::{Duration, Instant};

/// How much longer than the kernel's own timeout to wait for it to tell of it.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct Report<'a> {
    device: &'a str,
    already_connected: bool,
}

/// What the options ask for, with names and defaults worked out.
pub(super) fn wish(options: &Connect, places: &Places) -> Result<Wish, Error> {
    let target = Endpoint::new(&options.traddr, options.trsvcid);
    let fail = |error: Error| error.during(format_args!("connect to {target}"));
    let address = resolve(&options.traddr, options.host_traddr.as_ref()).map_err(fail)?;
    let host = places
        .identify(options.hostnqn.as_deref(), options.hostid)
        .map_err(fail)?;
    Ok(Wish {
        traddr: address.to_string(),
        trsvcid: options.trsvcid,
        subsysnqn: options.nqn.clone(),
        hostnqn: host.nqn,
        hostid: host.id.into_bytes(),
        host_traddr: options.host_traddr.as_ref().map(Address::to_string),
        nr_io_queues: options.nr_io_queues,
        queue_size: options.queue_size,
        keep_alive_tmo: options.keep_alive_tmo,
        connect_timeout: options.timeout * 1000,
        tos: options.tos,
        duplicate_connect: options.duplicate_connect,
    })
}

/// Connect, and print the name of the controller.
pub(super) fn run(
    options: &Connect,
    wish: &Wish,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let target = Endpoint::new(&wish.traddr, wish.trsvcid);
    let (device, already) = connect(options, wish, kernel)
        .map_err(|error| error.during(format_args!("connect to {target}")))?;
    let text = match options.output.format {
        Format::Json => {
            json::line(&Report {
                device: &device,
                already_connected: already,
            }) + "\n"
        }
        Format::Normal if already => format!("{device}: already connected\n"),
        Format::Normal => format!("{device}: connected to {} at {target}\n", wish.subsysnqn),
    };
    print(out, &text)
}

/// The name of the live controller, and whether it was there before.
fn connect(
    options: &Connect,
    wish: &Wish,
    kernel: &mut impl Kernel,
) -> Result<(String, bool), Error> {
    // Before the connect, so that no event of it can be missed.
    kernel.subscribe()?;
    let deadline = Instant::now() + Duration::from_millis(u64::from(wish.connect_timeout)) + GRACE;
    match kernel.connect(wish) {
        Ok(made) => {
            if let Err(error) = follow(kernel, made.id, deadline) {
                return Err(undo(kernel, &made, error));
            }
            Ok((made.name, false))
        }
        Err(error) if error.status == Status::Exists => {
            let existing = find(wish, kernel.controllers()?).ok_or(error)?;
            if !options.idempotent {
                let text = format!("already connected as {}", existing.device);
                return Err(Error::new(Status::Exists, text));
            }
            if judge(&existing)? == Progress::Pending {
                follow(kernel, existing.id, deadline)?;
            }
            Ok((existing.device, true))
        }
        Err(error) => Err(error),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Pending,
    Live,
}

/// Wait until a controller is live.
fn follow(kernel: &mut impl Kernel, id: u32, deadline: Instant) -> Result<(), Error> {
    loop {
        let progress = match kernel.next(Some(deadline))? {
            Notice::Event(Event::Controller(Change::Removed, controller))
                if controller.id == id =>
            {
                return Err(removed(Some(&controller)))
            }
            Notice::Event(Event::Controller(_, controller)) if controller.id == id => {
                judge(&controller)?
            }
            Notice::Event(_) => Progress::Pending,
            Notice::Lost => match kernel.controller(id)? {
                Some(controller) => judge(&controller)?,
                None => return Err(removed(None)),
            },
            Notice::Interrupted => return Err(Error::failed("interrupted")),
            Notice::Deadline => {
                return Err(Error::new(
                    Status::Timeout,
                    "the kernel did not finish in time",
                ))
            }
        };
        if progress == Progress::Live {
            return Ok(());
        }
    }
}

/// What the state of a controller that connects means.
fn judge(controller: &Controller) -> Result<Progress, Error> {
    match controller.state.known() {
        Some(CtrlState::Live) => Ok(Progress::Live),
        Some(CtrlState::Dead | CtrlState::Deleting) => Err(removed(Some(controller))),
        // A state that is not known here is on the way to one that is.
        Some(CtrlState::New | CtrlState::Connecting | CtrlState::Resetting) | None => {
            Ok(Progress::Pending)
        }
    }
}

/// Why a controller that should have become live is gone.
fn removed(controller: Option<&Controller>) -> Error {
    match controller.and_then(|controller| controller.error.clone()) {
        Some(failure) => failure.into(),
        None => Error::failed("the controller was removed while it connected"),
    }
}

/// Leave nothing half-made behind, and pass the error on. A second connect must not find the first
/// in its way, so this waits until the controller is gone.
fn undo(kernel: &mut impl Kernel, made: &Made, error: Error) -> Error {
    let deadline = Instant::now() + GRACE;
    let gone = match kernel.disconnect(made.id) {
        Ok(()) => departure::wait(kernel, &mut vec![made.id], deadline),
        // The kernel removed it first.
        Err(gone) if gone.status == Status::NotFound => Ok(End::Gone),
        Err(left) => Err(left),
    };
    let left = match gone {
        Ok(End::Gone) => return error,
        Ok(End::Interrupted | End::Deadline) => "the kernel goes on to remove it".into(),
        Err(left) => left.message,
    };
    Error {
        message: format!("{}; {} remains: {left}", error.message, made.name),
        ..error
    }
}

/// The controller that stands in the way of a wish.
fn find(wish: &Wish, controllers: Vec<Controller>) -> Option<Controller> {
    let same_address = |traddr: &str| match (traddr.parse(), wish.traddr.parse()) {
        (Ok::<Address, _>(one), Ok::<Address, _>(other)) => one == other,
        _ => traddr == wish.traddr,
    };
    controllers.into_iter().find(|each| {
        each.subsysnqn == wish.subsysnqn
            && each.trsvcid == wish.trsvcid
            && same_address(&each.traddr)
            && each.hostnqn.as_ref().is_none_or(|nqn| *nqn == wish.hostnqn)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Verb};
    use crate::controller::tests::{connecting, live};
    use crate::controller::State;
    use crate::failure::tests::rejected;
    use crate::kernel::tests::Script;
    use clap::Parser;

    fn options(more: &[&str]) -> Connect {
        let line = ["rnvme", "connect", "-a", "10.0.0.9"];
        let identity = [
            "-n",
            "nqn.2014-08.org.example:disk",
            "-q",
            "nqn.2014-08.org.example:host",
            "-I",
            "00112233-4455-6677-8899-aabbccddeeff",
        ];
        let line = line.iter().chain(&identity).chain(more);
        match Arguments::try_parse_from(line).unwrap().verb {
            Verb::Connect(options) => options,
            other => panic!("{other:?}"),
        }
    }

    /// A kernel that makes rnvme0, where the given controllers exist.
    fn kernel(controllers: Vec<Controller>) -> Script {
        Script {
            connects: [Ok(Made {
                id: 0,
                name: "rnvme0".into(),
            })]
            .into(),
            controllers,
            ..Script::default()
        }
    }

    fn play(more: &[&str], kernel: &mut Script) -> Result<String, Error> {
        let options = options(more);
        let wish = wish(&options, &Places::default()).unwrap();
        let mut out = Vec::new();
        run(&options, &wish, kernel, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn in_state(state: CtrlState) -> Controller {
        Controller {
            state: State(state as u32),
            ..connecting()
        }
    }

    fn dead() -> Controller {
        Controller {
            error: Some(rejected()),
            ..in_state(CtrlState::Dead)
        }
    }

    #[test]
    fn live_is_success() {
        let mut kernel = kernel(vec![]);
        let other = Controller { id: 7, ..dead() };
        kernel.tell(Change::Added, in_state(CtrlState::New));
        kernel.tell(Change::Changed, connecting());
        kernel.tell(Change::Changed, other);
        kernel.tell(Change::Changed, in_state(CtrlState::Live));
        assert_eq!(
            play(&[], &mut kernel).unwrap(),
            "rnvme0: connected to nqn.2014-08.org.example:disk at 10.0.0.9:4420\n"
        );
        assert!(kernel.disconnected.is_empty());
    }

    #[test]
    fn json_names_the_device() {
        let mut kernel = kernel(vec![]);
        kernel.tell(Change::Changed, live());
        assert_eq!(
            play(&["-o", "json"], &mut kernel).unwrap(),
            "{\"schema\":1,\"device\":\"rnvme0\",\"already_connected\":false}\n"
        );
    }

    #[test]
    fn options_reach_the_kernel() {
        let mut kernel = kernel(vec![]);
        kernel.tell(Change::Changed, live());
        let more = [
            "-s",
            "4421",
            "-w",
            "10.0.0.1",
            "-i",
            "3",
            "-Q",
            "64",
            "-k",
            "0",
            "-T",
            "9",
            "-D",
            "--timeout",
            "7",
        ];
        play(&more, &mut kernel).unwrap();
        let expected = Wish {
            traddr: "10.0.0.9".into(),
            trsvcid: 4421,
            subsysnqn: "nqn.2014-08.org.example:disk".into(),
            hostnqn: "nqn.2014-08.org.example:host".into(),
            hostid: std::array::from_fn(|i| i as u8 * 0x11),
            host_traddr: Some("10.0.0.1".into()),
            nr_io_queues: Some(3),
            queue_size: Some(64),
            keep_alive_tmo: Some(0),
            connect_timeout: 7000,
            tos: Some(9),
            duplicate_connect: true,
        };
        assert_eq!(kernel.wishes, [expected]);
    }

    #[test]
    fn dead_is_failure_and_leaves_nothing() {
        let mut kernel = kernel(vec![dead()]);
        kernel.tell(Change::Changed, dead());
        kernel.tell(Change::Changed, in_state(CtrlState::Deleting));
        kernel.tell(Change::Removed, in_state(CtrlState::Deleting));
        let error = play(&[], &mut kernel).unwrap_err();
        assert_eq!(
            error.message,
            "connect to 10.0.0.9:4420: rejected by target: no such subsystem nqn.x"
        );
        assert_eq!(error.status, Status::Failed);
        assert_eq!(error.failure.as_deref(), Some(&rejected()));
        assert_eq!(kernel.disconnected, [0]);
        assert!(
            kernel.notices.is_empty(),
            "it did not wait until it was gone"
        );
    }

    #[test]
    fn gone_is_failure_even_without_a_reason() {
        let mut kernel = kernel(vec![]);
        kernel.tell(Change::Removed, in_state(CtrlState::Deleting));
        assert_eq!(
            play(&[], &mut kernel).unwrap_err().message,
            "connect to 10.0.0.9:4420: the controller was removed while it connected"
        );
    }

    #[test]
    fn lost_events_are_made_up_for() {
        for (now, live) in [(vec![live()], true), (vec![dead()], false), (vec![], false)] {
            let mut kernel = kernel(now);
            kernel.notices.push_back(Notice::Lost);
            kernel.tell(Change::Removed, dead());
            assert_eq!(play(&[], &mut kernel).is_ok(), live);
        }
    }

    #[test]
    fn lost_events_may_leave_it_pending() {
        let mut kernel = kernel(vec![connecting()]);
        kernel.notices.push_back(Notice::Lost);
        kernel.tell(Change::Changed, live());
        assert!(play(&[], &mut kernel).is_ok());
    }

    #[test]
    fn an_interrupt_undoes() {
        let mut kernel = kernel(vec![connecting()]);
        kernel.notices.push_back(Notice::Interrupted);
        kernel.tell(Change::Removed, in_state(CtrlState::Deleting));
        let error = play(&[], &mut kernel).unwrap_err();
        assert_eq!(error.message, "connect to 10.0.0.9:4420: interrupted");
        assert_eq!(error.status, Status::Failed);
        assert_eq!(kernel.disconnected, [0]);
    }

    #[test]
    fn the_deadline_undoes() {
        let mut kernel = kernel(vec![connecting()]);
        kernel.notices.push_back(Notice::Deadline);
        kernel.tell(Change::Removed, in_state(CtrlState::Deleting));
        let error = play(&[], &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::Timeout);
        assert_eq!(
            error.message,
            "connect to 10.0.0.9:4420: the kernel did not finish in time"
        );
        assert_eq!(kernel.disconnected, [0]);
    }

    #[test]
    fn what_cannot_be_undone_is_named() {
        let mut kernel = kernel(vec![connecting()]);
        kernel.notices.push_back(Notice::Deadline);
        kernel.notices.push_back(Notice::Deadline);
        assert_eq!(
            play(&[], &mut kernel).unwrap_err().message,
            "connect to 10.0.0.9:4420: the kernel did not finish in time; \
             rnvme0 remains: the kernel goes on to remove it"
        );
    }

    fn taken(controllers: Vec<Controller>) -> Script {
        Script {
            connects: [Err(Error::new(Status::Exists, "it exists"))].into(),
            ..kernel(controllers)
        }
    }

    #[test]
    fn a_connected_one_is_an_error() {
        let mut kernel = taken(vec![live()]);
        let error = play(&[], &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::Exists);
        assert_eq!(
            error.message,
            "connect to 10.0.0.9:4420: already connected as rnvme0"
        );
        assert!(kernel.disconnected.is_empty());
    }

    #[test]
    fn or_none_if_that_is_wanted() {
        let mut kernel = taken(vec![live()]);
        assert_eq!(
            play(&["--idempotent"], &mut kernel).unwrap(),
            "rnvme0: already connected\n"
        );
    }

    #[test]
    fn which_may_have_to_be_waited_for() {
        let mut kernel = taken(vec![connecting()]);
        kernel.tell(Change::Changed, live());
        assert!(play(&["--idempotent"], &mut kernel).is_ok());
        let mut kernel = taken(vec![connecting()]);
        kernel.tell(Change::Changed, dead());
        assert!(play(&["--idempotent"], &mut kernel).is_err());
        // It is not ours to remove.
        assert!(kernel.disconnected.is_empty());
    }

    #[test]
    fn another_controller_does_not_count() {
        for other in [
            Controller {
                trsvcid: 1,
                ..live()
            },
            Controller {
                subsysnqn: "nqn.y".into(),
                ..live()
            },
            Controller {
                traddr: "10.0.0.8".into(),
                ..live()
            },
            Controller {
                hostnqn: Some("nqn.h".into()),
                ..live()
            },
        ] {
            let mut kernel = taken(vec![other]);
            let error = play(&["--idempotent"], &mut kernel).unwrap_err();
            assert_eq!(error.status, Status::Exists);
            assert_eq!(error.message, "connect to 10.0.0.9:4420: it exists");
        }
    }
}
