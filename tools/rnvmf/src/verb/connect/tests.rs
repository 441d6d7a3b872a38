// SPDX-License-Identifier: GPL-2.0
//! One connect: its output, and the removal of its controller after a failure.

use super::*;
use crate::cli::{Arguments, Verb};
use crate::error::tests::rejected;
use crate::error::{CtrlError, Stage, Status};
use crate::kernel::mock::MockKernel;
use crate::model::controller::tests::{connecting, live, rejecting};
use crate::model::controller::{Controller, State};
use crate::model::event::{Change, WaitResult};
use crate::model::namespace::tests::disk;
use crate::model::namespace::Namespace;
use crate::model::options::{CtrlArgs, NewController, Target};
use crate::output::Format;
use crate::uapi::{CtrlState, DiskUse, ErrorStage};
use crate::verb::attempt::find_existing;
use crate::verb::print::tests::Printed;
use clap::Parser;
use uuid::Uuid;

fn options(more: &[&str]) -> (Connect, Format) {
    let line = ["rnvmf", "connect", "-a", "10.0.0.9"];
    let name = ["-n", "nqn.2014-08.org.example:disk"];
    let name = if more.contains(&"-n") { &[][..] } else { &name };
    let identity = [
        "-q",
        "nqn.2014-08.org.example:host",
        "-I",
        "00112233-4455-6677-8899-aabbccddeeff",
    ];
    let line = line.iter().chain(name).chain(&identity).chain(more);
    let arguments = Arguments::try_parse_from(line).unwrap();
    match arguments.verb {
        Verb::Connect(options) => (options, arguments.format),
        other => panic!("{other:?}"),
    }
}

/// Returns a kernel with these controllers that creates rnvmf0.
fn kernel(controllers: Vec<Controller>) -> MockKernel {
    MockKernel {
        connect_replies: [Ok(NewController {
            id: 0,
            name: "rnvmf0".into(),
        })]
        .into(),
        controllers,
        ..MockKernel::default()
    }
}

fn run_mock(more: &[&str], kernel: &mut MockKernel) -> Result<String, Error> {
    run_mock_both(more, kernel).map(|(out, _)| out)
}

/// Returns the standard output and the standard error output.
fn run_mock_both(more: &[&str], kernel: &mut MockKernel) -> Result<(String, String), Error> {
    let (options, format) = options(more);
    let args = connect_args(&options, &SystemEnv::default()).unwrap();
    let printed = Printed::of(format, |printer| run(&options, &args, kernel, printer));
    let Printed { out, err, end } = printed;
    end.map(|()| (out, err))
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
    kernel.push_event(Change::Added, in_state(CtrlState::New));
    kernel.push_event(Change::Changed, connecting());
    kernel.push_event(Change::Changed, other);
    kernel.push_event(Change::Changed, in_state(CtrlState::Live));
    assert_eq!(
        run_mock(&[], &mut kernel).unwrap(),
        "rnvmf0: connected to nqn.2014-08.org.example:disk at 10.0.0.9:4420\n"
    );
    assert!(kernel.disconnected.is_empty());
}

#[test]
fn what_has_no_effect_is_told() {
    let mut kernel = kernel(vec![]);
    kernel.push_event(Change::Changed, live());
    let (_, told) = run_mock_both(&["-F", "601", "-o", "json"], &mut kernel).unwrap();
    let text = "a --fast_io_fail_tmo of 601 s has no effect, as --ctrl-loss-tmo is 600 s";
    let warning = format!("{{\"schema\":1,\"warning\":{{\"message\":\"{text}\"}}}}\n");
    assert_eq!(told, warning);
    // An existing controller keeps its options.
    let mut kernel = kernel_with(vec![existing()]);
    let (out, told) = run_mock_both(&["--idempotent", "-F", "601"], &mut kernel).unwrap();
    assert_eq!(
        (out.as_str(), told.as_str()),
        ("rnvmf0: already connected\n", "")
    );
}

#[test]
fn json_names_the_device() {
    let mut kernel = kernel(vec![]);
    kernel.push_event(Change::Changed, live());
    assert_eq!(
        run_mock(&["-o", "json"], &mut kernel).unwrap(),
        "{\"schema\":1,\"device\":\"rnvmf0\",\"already_connected\":false}\n"
    );
}

#[test]
fn namespaces_without_a_disk_are_told() {
    let told = "rnvmf0: connected to nqn.2014-08.org.example:disk at 10.0.0.9:4420\n";
    let warned =
        "rnvmf: rnvmf0: no disk: namespace 2: 8 bytes of metadata per block are not supported\n\
                  rnvmf: rnvmf0: no disk: namespace 7: not attached to the controller\n\
                  rnvmf: rnvmf0: no disk: 1 more namespace\n";
    let mut kernel = kernel(vec![]);
    kernel.push_event(Change::Changed, rejecting());
    let (out, err) = run_mock_both(&[], &mut kernel).unwrap();
    assert_eq!((out.as_str(), err.as_str()), (told, warned));
}

#[test]
fn json_has_namespaces_without_a_disk() {
    let mut kernel = kernel(vec![]);
    kernel.push_event(Change::Changed, rejecting());
    let (out, err) = run_mock_both(&["-o", "json"], &mut kernel).unwrap();
    assert_eq!(
        out,
        "{\"schema\":1,\"device\":\"rnvmf0\",\"already_connected\":false,\
         \"refused_namespaces\":[\
         {\"nsid\":2,\"reason\":\"8 bytes of metadata per block are not supported\"},\
         {\"nsid\":7,\"reason\":\"not attached to the controller\"}]}\n"
    );
    assert_eq!(err, "");
}

#[test]
fn options_reach_the_kernel() {
    let mut kernel = kernel(vec![]);
    kernel.push_event(Change::Changed, live());
    let more = [
        "-s",
        "4421",
        "-w",
        "10.0.0.1",
        "-i",
        "3",
        "-W",
        "2",
        "-P",
        "1",
        "-Q",
        "64",
        "-k",
        "0",
        "-T",
        "9",
        "-c",
        "2",
        "-l",
        "-1",
        "-F",
        "5",
        "-D",
        "--disable-sqflow",
        "--timeout",
        "7",
    ];
    run_mock(&more, &mut kernel).unwrap();
    let expected = ConnectArgs {
        target: Target {
            traddr: "10.0.0.9".into(),
            trsvcid: 4421,
            subsysnqn: "nqn.2014-08.org.example:disk".into(),
            hostnqn: "nqn.2014-08.org.example:host".into(),
            hostid: Uuid::from_bytes(std::array::from_fn(|i| i as u8 * 0x11)),
            host_traddr: Some("10.0.0.1".into()),
            connect_timeout: 7000,
            tos: Some(9),
        },
        ctrl: CtrlArgs {
            nr_io_queues: Some(3),
            nr_write_queues: Some(2),
            nr_poll_queues: Some(1),
            queue_size: Some(64),
            keep_alive_tmo: Some(0),
            disable_sqflow: true,
            reconnect: ReconnectOptions {
                reconnect_delay: Some(2),
                ctrl_loss_tmo: Some(LOSS_TMO_NEVER),
                fast_io_fail_tmo: Some(5),
                cqt: None,
            },
        },
        duplicate_connect: true,
    };
    assert_eq!(kernel.connect_requests, [expected]);
}

#[test]
fn dead_is_failure_and_leaves_nothing() {
    let mut kernel = kernel(vec![dead()]);
    kernel.push_event(Change::Changed, dead());
    kernel.push_event(Change::Changed, in_state(CtrlState::Deleting));
    kernel.push_event(Change::Removed, in_state(CtrlState::Deleting));
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(
        error.message,
        "connect to 10.0.0.9:4420: rejected by target: no such subsystem nqn.x"
    );
    assert_eq!(error.status, Status::Failed);
    assert_eq!(error.ctrl_error.as_deref(), Some(&rejected()));
    assert_eq!(kernel.disconnected, [0]);
    assert!(
        kernel.wait_results.is_empty(),
        "it did not wait until it was gone"
    );
}

#[test]
fn gone_is_failure_even_without_a_reason() {
    let mut kernel = kernel(vec![]);
    kernel.push_event(Change::Removed, in_state(CtrlState::Deleting));
    assert_eq!(
        run_mock(&[], &mut kernel).unwrap_err().message,
        "connect to 10.0.0.9:4420: the controller was removed while it connected"
    );
}

#[test]
fn lost_events_are_made_up_for() {
    for (now, live) in [(vec![live()], true), (vec![dead()], false), (vec![], false)] {
        let mut kernel = kernel(now);
        kernel.wait_results.push_back(WaitResult::EventsLost);
        kernel.push_event(Change::Removed, dead());
        assert_eq!(run_mock(&[], &mut kernel).is_ok(), live);
    }
}

#[test]
fn lost_events_may_leave_it_pending() {
    let mut kernel = kernel(vec![connecting()]);
    kernel.wait_results.push_back(WaitResult::EventsLost);
    kernel.push_event(Change::Changed, live());
    assert!(run_mock(&[], &mut kernel).is_ok());
}

#[test]
fn an_interrupt_undoes() {
    let mut kernel = kernel(vec![connecting()]);
    kernel.wait_results.push_back(WaitResult::Interrupted);
    kernel.push_event(Change::Removed, in_state(CtrlState::Deleting));
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(error.message, "connect to 10.0.0.9:4420: interrupted");
    assert_eq!(error.status, Status::Failed);
    assert_eq!(kernel.disconnected, [0]);
}

#[test]
fn the_deadline_undoes() {
    let mut kernel = kernel(vec![connecting()]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.push_event(Change::Removed, in_state(CtrlState::Deleting));
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(error.status, Status::Timeout);
    assert_eq!(
        error.message,
        "connect to 10.0.0.9:4420: timed out waiting for the kernel"
    );
    assert_eq!(kernel.disconnected, [0]);
}

#[test]
fn at_the_deadline_it_may_be_live_after_all() {
    let mut kernel = kernel(vec![live()]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    assert!(run_mock(&[], &mut kernel).is_ok());
    assert!(kernel.disconnected.is_empty());
}

// The kernel limits the time for each disk.
#[test]
fn the_deadline_restarts_while_disks_are_added() {
    let mut growing = connecting();
    growing.nr_namespaces = Some(400);
    let mut kernel = kernel(vec![growing]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.push_event(Change::Changed, live());
    assert!(run_mock(&[], &mut kernel).is_ok());
    assert!(kernel.disconnected.is_empty());
}

#[test]
fn no_more_disks_at_the_next_deadline() {
    let mut stuck = connecting();
    stuck.nr_namespaces = Some(400);
    let mut kernel = kernel(vec![stuck]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.push_event(Change::Removed, in_state(CtrlState::Deleting));
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(error.status, Status::Timeout);
}

#[test]
fn what_cannot_be_undone_is_named() {
    let mut kernel = kernel(vec![connecting()]);
    kernel.wait_results.push_back(WaitResult::Deadline);
    kernel.wait_results.push_back(WaitResult::Deadline);
    assert_eq!(
        run_mock(&[], &mut kernel).unwrap_err().message,
        "connect to 10.0.0.9:4420: timed out waiting for the kernel; \
         rnvmf0 is not removed: timed out"
    );
}

fn kernel_with(controllers: Vec<Controller>) -> MockKernel {
    MockKernel {
        connect_replies: [Err(Error::new(Status::Exists, "it exists"))].into(),
        ..kernel(controllers)
    }
}

/// Returns a live controller without a source address.
fn existing() -> Controller {
    Controller {
        host_traddr: None,
        ..live()
    }
}

#[test]
fn a_connected_one_is_an_error() {
    let mut kernel = kernel_with(vec![existing()]);
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(error.status, Status::Exists);
    assert_eq!(
        error.message,
        "connect to 10.0.0.9:4420: already connected as rnvmf0"
    );
    assert!(kernel.disconnected.is_empty());
}

#[test]
fn one_that_is_not_live_is_not_connected() {
    let error = run_mock(&[], &mut kernel_with(vec![connecting()])).unwrap_err();
    assert_eq!(error.status, Status::Exists);
    assert_eq!(
        error.message,
        "connect to 10.0.0.9:4420: rnvmf0 exists and is connecting"
    );
}

#[test]
fn a_large_answer_that_does_not_arrive_hints_at_the_mtu() {
    let error = CtrlError {
        stage: Stage(ErrorStage::Identify as u32),
        errno: libc::ETIMEDOUT,
        unanswered: true,
        message: "identify controller: no response from the target in 8 s".into(),
        ..rejected()
    };
    let late = Controller {
        error: Some(error),
        ..in_state(CtrlState::Dead)
    };
    let mut kernel = kernel(vec![]);
    kernel.push_event(Change::Changed, late.clone());
    kernel.push_event(Change::Removed, late);
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(error.status, Status::Timeout);
    assert_eq!(
        error.message,
        "connect to 10.0.0.9:4420: identify controller: no response from the target in 8 s; \
         smaller packets arrived: check the MTU of each hop"
    );
}

/// Returns a kernel with the dead rnvmf0, whose disk is rnvmf0n1, and a reply to a second connect.
fn kernel_with_dead() -> MockKernel {
    let mut kernel = kernel_with(vec![dead()]);
    kernel.namespaces = vec![disk()];
    let (id, name) = (5, "rnvmf0".into());
    kernel
        .connect_replies
        .push_back(Ok(NewController { id, name }));
    kernel
}

#[test]
fn a_dead_one_is_replaced() {
    for more in [&[][..], &["--idempotent"]] {
        let mut kernel = kernel_with_dead();
        kernel.push_event(Change::Changed, in_state(CtrlState::Deleting));
        kernel.push_event(Change::Removed, dead());
        kernel.push_event(Change::Changed, Controller { id: 5, ..live() });
        assert_eq!(
            run_mock(more, &mut kernel).unwrap(),
            "rnvmf0: connected to nqn.2014-08.org.example:disk at 10.0.0.9:4420\n"
        );
        assert_eq!(kernel.disconnected, [0]);
        assert_eq!(kernel.connect_requests.len(), 2);
    }
}

#[test]
fn a_dead_one_is_replaced_although_its_removal_is_missed() {
    let mut kernel = kernel_with_dead();
    kernel.rejections = [Error::new(Status::NotFound, "no such controller")].into();
    kernel.push_event(Change::Removed, dead());
    kernel.push_event(Change::Changed, Controller { id: 5, ..live() });
    assert!(run_mock(&[], &mut kernel).is_ok());
}

#[test]
fn what_replaces_a_dead_one_may_fail() {
    let mut kernel = kernel_with_dead();
    kernel.push_event(Change::Removed, dead());
    kernel.push_event(Change::Changed, Controller { id: 5, ..dead() });
    kernel.push_event(Change::Removed, Controller { id: 5, ..dead() });
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(
        error.message,
        "connect to 10.0.0.9:4420: rejected by target: no such subsystem nqn.x"
    );
    assert_eq!(kernel.disconnected, [0, 5]);
    let mut kernel = kernel_with(vec![dead()]);
    kernel.connect_replies.push_back(Err(Error::failed("no")));
    kernel.push_event(Change::Removed, dead());
    let error = run_mock(&[], &mut kernel).unwrap_err();
    assert_eq!(error.message, "connect to 10.0.0.9:4420: no");
}

#[test]
fn an_unusual_name_is_told_if_the_target_does_not_know_it() {
    for (nqn, end) in [
        (
            "disk1",
            "no such subsystem nqn.x; the name does not begin with nqn.",
        ),
        (
            "NQN.x",
            "no such subsystem nqn.x; the name does not begin with nqn.",
        ),
        ("nqn.x", "no such subsystem nqn.x"),
    ] {
        let mut kernel = kernel(vec![dead()]);
        kernel.push_event(Change::Changed, dead());
        kernel.push_event(Change::Removed, in_state(CtrlState::Deleting));
        let error = run_mock(&["-n", nqn], &mut kernel).unwrap_err();
        let wanted = format!("connect to 10.0.0.9:4420: rejected by target: {end}");
        assert_eq!(error.message, wanted);
    }
}

#[test]
fn a_dead_one_in_use_stays() {
    for more in [&[][..], &["--idempotent"]] {
        let mut kernel = kernel_with_dead();
        kernel.namespaces = vec![Namespace {
            usage: Some(DiskUse::Claimed as u32),
            ..disk()
        }];
        let error = run_mock(more, &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::Exists);
        assert_eq!(
            error.message,
            "connect to 10.0.0.9:4420: rnvmf0 exists and is dead: \
             rejected by target: no such subsystem nqn.x; /dev/rnvmf0n1 is in use: \
             unmount it and connect again, or rnvmf disconnect -d rnvmf0"
        );
        assert!(kernel.disconnected.is_empty());
    }
}

#[test]
fn one_that_has_gone_meanwhile_is_not_in_the_way() {
    let mut kernel = kernel(vec![]);
    let exists = Error::new(Status::Exists, "it exists");
    kernel.connect_replies.push_front(Err(exists));
    kernel.push_event(Change::Changed, live());
    assert!(run_mock(&[], &mut kernel).is_ok());
    assert_eq!(kernel.connect_requests.len(), 2);
}

#[test]
fn or_none_if_that_is_wanted() {
    let mut kernel = kernel_with(vec![existing()]);
    assert_eq!(
        run_mock(&["--idempotent"], &mut kernel).unwrap(),
        "rnvmf0: already connected\n"
    );
}

#[test]
fn which_may_have_to_be_waited_for() {
    let mut kernel = kernel_with(vec![connecting()]);
    kernel.push_event(Change::Changed, live());
    assert!(run_mock(&["--idempotent"], &mut kernel).is_ok());
    let mut kernel = kernel_with(vec![connecting()]);
    kernel.push_event(Change::Changed, dead());
    assert!(run_mock(&["--idempotent"], &mut kernel).is_err());
    // A controller that existed is not removed.
    assert!(kernel.disconnected.is_empty());
}

#[test]
fn and_may_not_come() {
    let late = |existing| {
        let mut kernel = kernel_with(vec![existing]);
        kernel.wait_results.push_back(WaitResult::Deadline);
        let error = run_mock(&["--idempotent"], &mut kernel).unwrap_err();
        assert!(kernel.disconnected.is_empty());
        error.message
    };
    let lost = Controller {
        error: Some(rejected()),
        ..connecting()
    };
    assert_eq!(
        late(lost),
        "connect to 10.0.0.9:4420: rnvmf0 exists and is connecting: \
         rejected by target: no such subsystem nqn.x"
    );
    assert_eq!(
        late(connecting()),
        "connect to 10.0.0.9:4420: rnvmf0 exists and is connecting"
    );
}

#[test]
fn the_one_from_the_same_address_is_meant() {
    let from = |device: &str, address: Option<&str>| Controller {
        device: device.into(),
        host_traddr: address.map(str::to_owned),
        ..live()
    };
    let controllers = [
        from("rnvmf0", Some("10.0.0.1")),
        from("rnvmf1", Some("10.0.0.2")),
        from("rnvmf2", None),
        from("rnvmf3", None),
    ];
    for (more, device) in [
        (&["-w", "10.0.0.1"][..], "rnvmf0"),
        (&["-w", "10.0.0.2"][..], "rnvmf1"),
        (&[], "rnvmf2"),
    ] {
        let options = [&["--idempotent"], more].concat();
        let mut kernel = kernel_with(controllers.to_vec());
        let told = run_mock(&options, &mut kernel).unwrap();
        assert_eq!(told, format!("{device}: already connected\n"));
    }
    let options = ["--idempotent", "-w", "10.0.0.3"];
    let mut kernel = kernel_with(controllers.to_vec());
    kernel
        .connect_replies
        .extend(kernel.connect_replies.clone());
    assert!(run_mock(&options, &mut kernel).is_err());
}

#[test]
fn a_scope_has_a_name_and_a_number() {
    let at = |traddr: &str| Controller {
        traddr: traddr.into(),
        ..existing()
    };
    let found = |traddr: &str, controllers: &[&str]| {
        let args = connect_args(&options(&[]).0, &SystemEnv::default()).unwrap();
        let target = Target {
            traddr: traddr.into(),
            ..args.target
        };
        let controllers = controllers.iter().map(|traddr| at(traddr)).collect();
        find_existing(&target, controllers).map(|each| each.traddr)
    };
    let eth0 = Some("fe80::1%eth0".to_owned());
    assert_eq!(found("fe80::1%3", &["fe80::1%eth0"]), eth0);
    assert_eq!(
        found("fe80::1%eth0", &["fe80::1%eth1", "fe80::1%eth0"]),
        eth0
    );
    // The index may be that of either name.
    assert_eq!(found("fe80::1%3", &["fe80::1%eth1", "fe80::1%eth0"]), None);
    assert_eq!(found("fe80::1%eth0", &["fe80::1%eth1"]), None);
    assert_eq!(found("fe80::1%3", &["fe80::2%eth0"]), None);
}

#[test]
fn another_controller_does_not_count() {
    for other in [
        Controller {
            trsvcid: 1,
            ..existing()
        },
        Controller {
            subsysnqn: "nqn.y".into(),
            ..existing()
        },
        Controller {
            traddr: "10.0.0.8".into(),
            ..existing()
        },
        Controller {
            hostnqn: Some("nqn.h".into()),
            ..existing()
        },
        Controller {
            hostid: "00112233-4455-6677-8899-aabbccddee00".parse().ok(),
            ..existing()
        },
        Controller {
            host_traddr: Some("10.0.0.1".into()),
            ..existing()
        },
    ] {
        let mut kernel = kernel_with(vec![other]);
        kernel
            .connect_replies
            .extend(kernel.connect_replies.clone());
        let error = run_mock(&["--idempotent"], &mut kernel).unwrap_err();
        assert_eq!(error.status, Status::Exists);
        assert_eq!(error.message, "connect to 10.0.0.9:4420: it exists");
    }
}
