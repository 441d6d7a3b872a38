// SPDX-License-Identifier: GPL-2.0

//! Properties of a controller, and the timeouts and states that depend on them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::property::{
    Capabilities, ControllerStatus, Progress, ReadyTimeouts, Version,
};

/// Longest timeout: 65535 units of 500 ms.
const LONGEST_MS: u32 = 65535 * 500;

fuzz_target!(|data: &[u8]| {
    let Some((capabilities, rest)) = data.split_first_chunk() else {
        return;
    };
    let capabilities = Capabilities(u64::from_le_bytes(*capabilities));
    match capabilities.configure() {
        Ok(configuration) => {
            let disabled = configuration.get();
            assert_eq!(configuration.enabled().get(), disabled | 1);
            assert_eq!(configuration.enabled().disabled().get(), disabled);
            assert_ne!(configuration.shut_down().get(), disabled);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert!((12..=27).contains(&capabilities.min_page_shift()));
    assert!(capabilities.disable_timeout_ms() <= LONGEST_MS);
    let Some(word) = rest.first_chunk() else {
        return;
    };
    let word = u32::from_le_bytes(*word);
    for timeouts in [None, Some(ReadyTimeouts(word))] {
        let ready = capabilities.ready_timeout_ms(timeouts);
        assert!((1..=LONGEST_MS).contains(&ready), "{ready}");
    }
    let status = ControllerStatus(word);
    assert!(status.enabling() != Progress::Done || status.disabling() != Progress::Done);
    let _ = status.shutting_down();
    assert!(!Version(word).to_string().is_empty());
});
