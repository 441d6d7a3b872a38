// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

/// Returns data with each `value` at its offset in the kernel's `struct nvme_id_ctrl`.
fn block(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut data = vec![0; 4096];
    for (at, value) in fields {
        data[*at..*at + value.len()].copy_from_slice(value);
    }
    data
}

#[test]
fn layout() {
    let data = block(&[
        (0, &[0x4d, 0x14]),
        (4, b"0123456789abcdef0123"),
        (24, b"Linux                                   "),
        (64, b"6.1.0-7 "),
        (77, &[5]),
        (78, &[0xef, 0xff]),
        (80, &[0, 1, 2, 0]),
        (88, &[1, 2, 3, 4]),
        (92, &[0, 9, 0, 0x80]),
        (96, &[0x41, 0x80, 0, 0]),
        (111, &[1]),
        (128, &[1, 0, 2, 0, 3, 1]),
        (261, &[0x02]),
        (320, &[10, 0]),
        (514, &[0x00, 0x01]),
        (520, &[0x0c, 0]),
        (525, &[1]),
        (536, &[0x05, 0, 0x10, 0]),
        (768, b"nqn.test\0"),
        (1792, &[4, 1, 0, 0]),
        (1796, &[1, 0, 0, 0]),
        (1800, &[3, 1]),
    ]);
    let controller = Controller::parse(&data).unwrap();
    assert_eq!(controller.vendor_id, 0x144d);
    assert_eq!(controller.serial.as_str(), "0123456789abcdef0123");
    assert_eq!(controller.model.as_str(), "Linux");
    assert_eq!(controller.firmware.as_str(), "6.1.0-7");
    assert_eq!(controller.max_transfer_shift, 5);
    assert_eq!(controller.controller_id, 0xffef);
    assert_eq!(controller.version, Version::new(2, 1, 0));
    assert_eq!(controller.shutdown_time_us, 0x0403_0201);
    assert_eq!(controller.async_events, 0x8000_0900);
    assert_eq!(controller.keep_alive_mode(), KeepAliveMode::TrafficBased);
    assert!(controller.has_extended_formats());
    assert_eq!(controller.kind, ControllerType::Io);
    assert_eq!(controller.retry_delays, [1, 2, 0x103]);
    assert!(controller.has_effects_log());
    assert_eq!(controller.keep_alive_granularity, 10);
    assert_eq!(controller.keep_alive_expiry_ms(4_001), 5_000);
    assert_eq!(controller.keep_alive_expiry_ms(5_000), 5_000);
    assert_eq!(controller.keep_alive_expiry_ms(u32::MAX), u32::MAX);
    assert_eq!(controller.max_commands, 256);
    assert!(controller.has_dataset_management() && controller.has_write_zeroes());
    assert!(controller.has_write_cache());
    assert!(controller.has_keyed_sgl() && controller.has_sgl_offset());
    assert_eq!(controller.subsystem.as_str(), "nqn.test");
    assert_eq!(controller.io_command_capsule_size, 0x104);
    assert_eq!(controller.io_response_capsule_size, 1);
    assert_eq!(controller.in_capsule_data_offset, 0x103);
}

#[test]
fn nothing_is_claimed_by_zeroes() {
    let controller = Controller::parse(&[0; 4096]).unwrap();
    assert_eq!(controller.keep_alive_mode(), KeepAliveMode::CommandBased);
    assert!(!controller.has_dataset_management() && !controller.has_write_zeroes());
    assert!(!controller.has_write_cache() && !controller.has_extended_formats());
    assert!(!controller.has_keyed_sgl() && !controller.has_sgl_offset());
    assert_eq!(controller.kind, ControllerType::Unknown);
}

#[test]
fn paths() {
    for multipath in 0..=u8::MAX {
        let controller = Controller::parse(&block(&[(76, &[multipath])])).unwrap();
        assert_eq!(controller.has_other_paths(), multipath % 4 != 0);
    }
}

#[test]
fn shutdown_timeouts() {
    for (us, ms) in [
        (0, 5_000),
        (7_500_999, 7_500),
        (60_000_000, 60_000),
        (u32::MAX, 60_000),
    ] {
        let mut controller = Controller::parse(&[0; 4096]).unwrap();
        controller.shutdown_time_us = us;
        assert_eq!(controller.shutdown_timeout_ms(), ms);
    }
}

#[test]
fn any_bytes() {
    let mut random = Random::new(4);
    let mut data = [0; 4096];
    for _ in 0..200 {
        random.fill(&mut data);
        assert!(Controller::parse(&data).is_ok());
        let len = random.below(data.len());
        assert_eq!(Controller::parse(&data[..len]), Err(ShortData(len)));
    }
}

#[test]
fn ana_needs_its_bit() {
    for (multipath, time) in [(0, None), (7, None), (8, Some(10)), (0xff, Some(10))] {
        let data = block(&[(76, &[multipath]), (342, &[10])]);
        assert_eq!(
            Controller::parse(&data).unwrap().ana_transition_time(),
            time
        );
    }
}

#[test]
fn what_only_some_controllers_have() {
    let none = Controller::parse(&[0; 4096]).unwrap();
    assert!(!none.has_retry_delays() && !none.has_effects_log());
    let data = block(&[(132, &[1, 0]), (261, &[0xfd])]);
    let other = Controller::parse(&data).unwrap();
    assert!(other.has_retry_delays() && !other.has_effects_log());
}

#[test]
fn types() {
    for (kind, text) in [
        (0, "a controller of unknown type"),
        (1, "an I/O controller"),
        (2, "a discovery controller"),
        (3, "an administrative controller"),
        (4, "a controller of type 4"),
    ] {
        let controller = Controller::parse(&block(&[(111, &[kind])])).unwrap();
        assert_eq!(controller.kind.to_string(), text);
    }
    assert_eq!(ControllerType::from_wire(3), ControllerType::Administrative);
}
