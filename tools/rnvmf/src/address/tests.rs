// SPDX-License-Identifier: GPL-2.0

use super::*;

fn parse(text: &str) -> Result<Address, &'static str> {
    text.parse()
}

#[test]
fn numeric_addresses_need_no_resolver() {
    for text in ["10.0.0.9", "fe80::1%eth0", "fe80::1%3", "2001:db8::1"] {
        assert_eq!(resolve(lookup, text, None, 10).unwrap().to_string(), text);
    }
}

#[test]
fn one_address_has_one_form() {
    assert_eq!(parse("2001:DB8:0::1"), parse("2001:db8::1"));
}

#[test]
fn malformed_ones_are_refused() {
    let long = format!("fe80::1%{}", "x".repeat(TRADDR_MAX_LEN));
    for text in ["", "10.0.0", "10.0.0.9%eth0", "fe80::1%", "[::1]", &long] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn brackets_are_of_endpoints_only() {
    let error = resolve(lookup, "[::1]", None, 10).unwrap_err();
    let text = "invalid address [::1]: write it without brackets";
    assert_eq!(
        (error.status, error.message.as_str()),
        (Status::Usage, text)
    );
    assert_eq!(Endpoint::new("[::1]", 4420).to_string(), "[::1]:4420");
}

#[test]
fn a_link_local_address_needs_an_interface() {
    let error = resolve(lookup, "fe80::1", None, 10).unwrap_err();
    assert_eq!(error.status, Status::Usage);
    assert_eq!(
        error.message,
        "invalid address fe80::1: a link-local address needs its interface, as in fe80::1%eth0"
    );
    assert!(Address::parse_scoped("fe80::1%eth0").is_ok());
    // One in a discovery log has none.
    assert!(parse("fe80::1").is_ok());
}

#[test]
fn the_family_of_the_host_address_decides() {
    let found = || [parse("2001:db8::1").unwrap(), parse("10.0.0.9").unwrap()].into_iter();
    let v4 = parse("10.0.0.1").unwrap();
    assert_eq!(first_of_family(found(), None), parse("2001:db8::1").ok());
    assert_eq!(first_of_family(found(), Some(&v4)), parse("10.0.0.9").ok());
    assert_eq!(first_of_family(found().take(1), Some(&v4)), None);
}

#[test]
fn a_scope_of_the_resolver_is_a_number() {
    let socket: SocketAddr = "[fe80::1%3]:0".parse().unwrap();
    assert_eq!(Address::from(socket).to_string(), "fe80::1%3");
}

#[test]
fn a_name_that_is_none_fails_with_a_reason() {
    let error = resolve(lookup, "no such name", None, 10).unwrap_err();
    assert!(
        error
            .message
            .starts_with("cannot resolve host name no such name: "),
        "{}",
        error.message
    );
}

#[test]
fn who_does_not_answer_in_time_is_not_waited_for() {
    let (hold, held) = sync_channel::<()>(0);
    let silent = move |_: &str| {
        let _ = held.recv();
        Ok(vec![])
    };
    let error = resolve(silent, "a.example", None, 1).unwrap_err();
    let text = "cannot resolve host name a.example: no answer within 1 s";
    assert_eq!(
        (error.status, error.message.as_str()),
        (Status::Timeout, text)
    );
    drop(hold);
}

#[test]
fn endpoints_bracket_ipv6() {
    assert_eq!(
        Endpoint::new("fe80::1%eth0", 4420).to_string(),
        "[fe80::1%eth0]:4420"
    );
    assert_eq!(Endpoint::new("10.0.0.9", 4420).to_string(), "10.0.0.9:4420");
}

#[test]
fn who_is_to_stop_waits_for_no_answer() {
    let (hold, held) = sync_channel::<()>(0);
    let silent = move || {
        let _ = held.recv();
        Ok(())
    };
    let error = run_with_timeout(600, || true, silent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    drop(hold);
}
