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
pub(super) mod tests;
