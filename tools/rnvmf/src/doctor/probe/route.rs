// SPDX-License-Identifier: GPL-2.0

//! Network interfaces and routes.

use super::tool::IP;
use crate::address::Address;
use crate::doctor::snapshot::{Interface, Probed, Route, RouteLookup};

/// Beginnings of the error messages of `ip` if the kernel rejects the lookup of a route.
const REJECTIONS: [&str; 2] = ["ip: RTNETLINK answers: ", "ip: Error: "];

/// Returns the network interfaces of this network namespace, with their addresses.
pub(super) fn interfaces() -> Probed<Vec<Interface>> {
    IP.run(&["-j", "-d", "address", "show"])
}

/// Looks up the route of a connection to `target`. If the user chose the source address `from`, the
/// route leaves by the interface that has that address.
pub(super) fn to(
    target: &Address,
    from: Option<&Address>,
    interfaces: &Probed<Vec<Interface>>,
) -> Probed<RouteLookup> {
    let mut all = interfaces.as_ref()?.iter();
    let interface = match target.scope().or(from.and_then(Address::scope)) {
        Some(scope) => {
            let has_scope =
                |each: &&Interface| each.ifname == scope || each.ifindex.to_string() == scope;
            let Some(interface) = all.find(has_scope) else {
                let why = format!("there is no interface {scope}");
                return Ok(RouteLookup::NoRoute(why));
            };
            Some(interface)
        }
        None => from.and_then(|from| all.find(|each| each.has(from.ip()))),
    };
    let (target, from) = (
        target.ip().to_string(),
        from.map(|from| from.ip().to_string()),
    );
    let mut arguments = vec!["-j", "route", "get", &target];
    arguments.extend(from.iter().flat_map(|from| ["from", from]));
    arguments.extend(interface.iter().flat_map(|each| ["oif", &each.ifname]));
    read(IP.run(&arguments))
}

/// Classifies the result of `ip -j route get`.
fn read(printed: Probed<Vec<Route>>) -> Probed<RouteLookup> {
    let routes = match printed {
        Ok(routes) => routes,
        Err(why) => {
            let rejection = REJECTIONS.iter().find_map(|start| why.strip_prefix(start));
            return rejection
                .map(|text| RouteLookup::NoRoute(text.into()))
                .ok_or(why);
        }
    };
    let route = routes
        .into_iter()
        .next()
        .ok_or("ip: unexpected output: no route")?;
    Ok(match route.kind.as_deref() {
        None | Some("unicast" | "local") => RouteLookup::Route(route),
        Some(kind) => RouteLookup::NoRoute(format!("the route is of type {kind}")),
    })
}

#[cfg(test)]
mod tests;
