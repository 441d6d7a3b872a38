// SPDX-License-Identifier: GPL-2.0

//! Messages from the kernel.

use crate::nlattr::{align, Attributes, Malformed};

/// Size of `struct nlmsghdr`, in bytes.
pub(super) const NETLINK_HEADER: usize = 16;

/// Size of `struct genlmsghdr`, in bytes.
pub(super) const GENERIC_HEADER: usize = 4;

/// A message.
pub(super) struct Message {
    /// Its type; that of a generic netlink message is the number of its family.
    pub(super) kind: u16,
    /// Number of the request that it answers.
    pub(super) sequence: u32,
    /// What follows the header.
    pub(super) body: MessageBody,
}

/// What follows the header of a message.
pub(super) enum MessageBody {
    /// A reply or an event.
    Payload(Payload),
    /// The end of an answer: `NLMSG_ERROR` or `NLMSG_DONE`.
    Ack(Ack),
    /// A control message that needs no action.
    Ignored,
}

/// A reply or an event.
pub(crate) struct Payload {
    /// The header of its family.
    pub(crate) header: Vec<u8>,
    /// Its attributes.
    pub(crate) attributes: Attributes,
}

/// How a request ended.
pub(super) struct Ack {
    /// Zero, or an error number, which is negative.
    pub(super) error: i32,
    /// The extended acknowledgement.
    pub(super) extack: Attributes,
}

/// Splits a datagram into messages, whose family header has `header_len` bytes.
pub(super) fn split(mut bytes: &[u8], header_len: usize) -> Result<Vec<Message>, Malformed> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let length = u32_at(bytes, 0)? as usize;
        if length < NETLINK_HEADER {
            return Err(Malformed::Message);
        }
        let message = bytes.get(..length).ok_or(Malformed::Message)?;
        messages.push(read(message, header_len)?);
        bytes = bytes.get(align(length)..).unwrap_or_default();
    }
    Ok(messages)
}

/// A message, as long as its header says.
fn read(bytes: &[u8], header_len: usize) -> Result<Message, Malformed> {
    let kind = u16_at(bytes, 4)?;
    let flags = i32::from(u16_at(bytes, 6)?);
    let payload = tail(bytes, NETLINK_HEADER)?;
    let body = match i32::from(kind) {
        libc::NLMSG_ERROR => MessageBody::Ack(ack(payload, flags, echo_len(payload, flags)?)?),
        libc::NLMSG_DONE => MessageBody::Ack(ack(payload, flags, 0)?),
        kind if kind < libc::NLMSG_MIN_TYPE => MessageBody::Ignored,
        _ => MessageBody::Payload(Payload {
            attributes: Attributes::parse(tail(payload, header_len)?)?,
            header: payload.get(..header_len).unwrap_or_default().to_vec(),
        }),
    };
    Ok(Message {
        kind,
        sequence: u32_at(bytes, 8)?,
        body,
    })
}

/// Returns how many bytes of the request an error message repeats.
fn echo_len(payload: &[u8], flags: i32) -> Result<usize, Malformed> {
    if flags & libc::NLM_F_CAPPED != 0 {
        return Ok(NETLINK_HEADER);
    }
    Ok(align(u32_at(payload, 4)? as usize))
}

/// An error number, `skip` bytes, and an extended acknowledgement if the flags say so.
fn ack(payload: &[u8], flags: i32, skip: usize) -> Result<Ack, Malformed> {
    let extack = match flags & libc::NLM_F_ACK_TLVS {
        0 => &[],
        _ => tail(payload, 4 + skip)?,
    };
    Ok(Ack {
        error: i32::from_ne_bytes(u32_at(payload, 0)?.to_ne_bytes()),
        extack: Attributes::parse(extack)?,
    })
}

fn tail(bytes: &[u8], start: usize) -> Result<&[u8], Malformed> {
    bytes.get(start..).ok_or(Malformed::Message)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    let chunk = tail(bytes, at)?.first_chunk();
    chunk
        .copied()
        .map(u16::from_ne_bytes)
        .ok_or(Malformed::Message)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    let chunk = tail(bytes, at)?.first_chunk();
    chunk
        .copied()
        .map(u32::from_ne_bytes)
        .ok_or(Malformed::Message)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::nlattr::tests::{bytes, number, text};

    fn split(bytes: &[u8]) -> Result<Vec<Message>, Malformed> {
        super::split(bytes, GENERIC_HEADER)
    }

    /// Message type of a family.
    const FAMILY: i32 = 0x1234;

    /// A netlink message of a type with flags, in answer to request 1.
    pub(in super::super) fn raw(kind: i32, flags: i32, payload: &[u8]) -> Vec<u8> {
        let mut message = ((NETLINK_HEADER + payload.len()) as u32)
            .to_ne_bytes()
            .to_vec();
        message.extend((kind as u16).to_ne_bytes());
        message.extend((flags as u16).to_ne_bytes());
        message.extend(1u32.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(payload);
        message.resize(align(message.len()), 0);
        message
    }

    /// A reply or an event of a family.
    pub(in super::super) fn data(flags: i32, command: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        data_of(FAMILY, flags, command, attributes)
    }

    /// The same of a certain family.
    pub(in super::super) fn data_of(
        family: i32,
        flags: i32,
        command: u8,
        attributes: &[Vec<u8>],
    ) -> Vec<u8> {
        let payload = [&[command, 1, 0, 0][..], &attributes.concat()].concat();
        raw(family, flags, &payload)
    }

    /// The end of a do, which repeats the request unless it succeeded.
    pub(in super::super) fn error(errno: i32, echo: &[u8], extack: &[Vec<u8>]) -> Vec<u8> {
        let mut flags = if extack.is_empty() {
            0
        } else {
            libc::NLM_F_ACK_TLVS
        };
        if errno == 0 {
            flags |= libc::NLM_F_CAPPED;
        }
        let request = raw(FAMILY, libc::NLM_F_REQUEST, echo);
        let payload = [&(-errno).to_ne_bytes()[..], &request, &extack.concat()].concat();
        raw(libc::NLMSG_ERROR, flags, &payload)
    }

    /// The end of a dump.
    pub(in super::super) fn done(errno: i32) -> Vec<u8> {
        raw(libc::NLMSG_DONE, libc::NLM_F_MULTI, &(-errno).to_ne_bytes())
    }

    fn verdict_of(datagram: &[u8]) -> Ack {
        let message = split(datagram).unwrap().remove(0);
        assert_eq!(message.sequence, 1);
        match message.body {
            MessageBody::Ack(ack) => ack,
            _ => panic!("no end"),
        }
    }

    #[test]
    fn a_datagram_has_several_messages() {
        let first = data(0, 7, &[number(1, 5u8)]);
        let second = data(0, 8, &[text(2, "x")]);
        let messages = split(&[first, second].concat()).unwrap();
        let read = |body: &MessageBody| match body {
            MessageBody::Payload(data) => (
                data.header[0],
                data.attributes.u8(1),
                data.attributes.string(2),
            ),
            _ => panic!("no data"),
        };
        let read: Vec<_> = messages.iter().map(|message| read(&message.body)).collect();
        assert_eq!(
            read,
            [
                (7, Ok(Some(5)), Ok(None)),
                (8, Ok(None), Ok(Some("x".into())))
            ]
        );
    }

    #[test]
    fn an_extended_acknowledgement_follows_the_request() {
        for echo in [&[][..], &[1, 2, 3, 4], &[1, 2, 3]] {
            let ack = verdict_of(&error(34, echo, &[text(1, "too small")]));
            assert_eq!(ack.error, -34);
            assert_eq!(ack.extack.string(1), Ok(Some("too small".into())));
        }
    }

    #[test]
    fn a_capped_error_repeats_the_header_only() {
        let payload = [
            &(-1i32).to_ne_bytes()[..],
            &100u32.to_ne_bytes(),
            &[0; 12],
            &text(1, "no"),
        ];
        let flags = libc::NLM_F_CAPPED | libc::NLM_F_ACK_TLVS;
        let ack = verdict_of(&raw(libc::NLMSG_ERROR, flags, &payload.concat()));
        assert_eq!(ack.extack.string(1), Ok(Some("no".into())));
    }

    #[test]
    fn a_dump_ends_with_its_error() {
        assert_eq!(verdict_of(&done(0)).error, 0);
        assert_eq!(verdict_of(&done(2)).error, -2);
    }

    #[test]
    fn what_is_cut_anywhere_is_malformed() {
        for whole in [
            data(0, 7, &[bytes(1, &[1, 2, 3, 4, 5])]),
            error(34, &[1, 2, 3, 4], &[text(1, "no")]),
            done(0),
        ] {
            assert!(split(&whole).is_ok());
            for length in 1..whole.len() {
                assert!(split(&whole[..length]).is_err(), "{length} of {whole:?}");
                // The same with a header that knows: what it has of attributes must be whole.
                let mut short = whole[..length].to_vec();
                if length >= NETLINK_HEADER {
                    short[..4].copy_from_slice(&(length as u32).to_ne_bytes());
                    // It must not panic; a list of attributes may well end here.
                    let _ = split(&short);
                }
            }
        }
    }

    #[test]
    fn a_header_that_claims_nothing_cannot_go_on_for_ever() {
        assert!(split(&[0; 32]).is_err());
    }
}
