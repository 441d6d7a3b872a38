// SPDX-License-Identifier: GPL-2.0

//! Converts attributes to JSON and back, by the tables of the netlink specification.
//!
//! A list of attributes is an object. Its keys are the names of the attributes, with underscores.
//! Its values depend on the types of the attributes:
//!
//! | type        | JSON                                               |
//! |-------------|----------------------------------------------------|
//! | number      | number                                             |
//! | string      | string                                             |
//! | binary      | hexadecimal string; requests take a UUID           |
//! | flag        | `true` if the flag is present                      |
//! | nest        | object                                             |
//! | nest, multi | array of objects                                   |
//!
//! Structures with the same field names derive `Deserialize` or `Serialize`.

use crate::error::Error;
use crate::uapi::{Attribute, Kind};
use netlink_packet_core::{
    parse_i32, parse_u16, parse_u32, parse_u64, parse_u8, DecodeError, DefaultNla, Emitable,
    NlasIterator,
};
use serde::de::{DeserializeOwned, Error as _};
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Decodes attributes of a set into a structure.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8], set: &[Attribute]) -> Result<T, Error> {
    let object = object(bytes, set).map_err(Error::malformed)?;
    serde_json::from_value(object).map_err(Error::malformed)
}

fn object(bytes: &[u8], set: &[Attribute]) -> Result<Value, DecodeError> {
    let mut object = Map::new();
    for nla in NlasIterator::new(bytes) {
        let nla = nla?;
        // A newer kernel may send attributes that this program does not know.
        let Some(Attribute { name, kind, .. }) = set.iter().find(|each| each.id == nla.kind())
        else {
            continue;
        };
        let value = value(nla.value(), kind);
        let value = value.map_err(|why| format!("attribute {name}: {why}"))?;
        let entry = object.entry(key(name));
        if !matches!(kind, Kind::Nests(_)) {
            entry.or_insert(value);
        } else if let Value::Array(list) = entry.or_insert(Value::Array(vec![])) {
            list.push(value);
        }
    }
    Ok(Value::Object(object))
}

fn value(bytes: &[u8], kind: &Kind) -> Result<Value, DecodeError> {
    Ok(match kind {
        Kind::U8 { .. } => parse_u8(bytes)?.into(),
        Kind::U16 { .. } => parse_u16(bytes)?.into(),
        Kind::U32 { .. } => parse_u32(bytes)?.into(),
        Kind::S32 => parse_i32(bytes)?.into(),
        Kind::Uint if bytes.len() == 4 => parse_u32(bytes)?.into(),
        Kind::Uint => parse_u64(bytes)?.into(),
        Kind::Str(_) => text(bytes).into(),
        Kind::Bytes(len) if bytes.len() == *len => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            digits.collect::<String>().into()
        }
        Kind::Bytes(_) => return Err("wrong length".into()),
        Kind::Flag => true.into(),
        Kind::Nest(set) | Kind::Nests(set) => object(bytes, set)?,
    })
}

/// Returns a string without its NUL. Control characters are replaced, because a terminal obeys them.
pub(super) fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(bytes));
    text.replace(char::is_control, "\u{fffd}")
}

/// Encodes the attributes of a request. Values that are `null` or `false` are left out.
pub(super) fn encode(object: &Value, set: &[Attribute]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for Attribute { id, name, kind } in set {
        let value = match (kind, &object[key(name)]) {
            (_, Value::Null | Value::Bool(false)) => continue,
            (Kind::U8 { .. }, value) => u8::deserialize(value)?.to_ne_bytes().into(),
            (Kind::U16 { .. }, value) => u16::deserialize(value)?.to_ne_bytes().into(),
            (Kind::U32 { .. }, value) => u32::deserialize(value)?.to_ne_bytes().into(),
            (Kind::Str(_), value) => [<&str>::deserialize(value)?.as_bytes(), b"\0"].concat(),
            (Kind::Bytes(_), value) => Uuid::deserialize(value)?.into_bytes().into(),
            (Kind::Flag, _) => vec![],
            _ => return Err(serde_json::Error::custom(format!("{name} is for replies"))),
        };
        let nla = DefaultNla::new(*id, value);
        let start = bytes.len();
        bytes.resize(start + nla.buffer_len(), 0);
        nla.emit(&mut bytes[start..]);
    }
    Ok(bytes)
}

/// Returns the key of an attribute.
fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns the value of the first attribute with a number.
pub(super) fn find(bytes: &[u8], id: u16) -> Option<Vec<u8>> {
    let mut same = NlasIterator::new(bytes)
        .flatten()
        .filter(|nla| nla.kind() == id);
    same.next().map(|nla| nla.value().to_vec())
}

#[cfg(test)]
mod tests;
