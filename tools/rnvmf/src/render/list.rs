// SPDX-License-Identifier: GPL-2.0

//! `rnvmf list`: disks.

use super::text::{known, size, table};
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;
use crate::output::json_member;
use serde::Serialize;

/// A disk, as in the JSON document.
#[derive(Serialize)]
struct Disk<'a> {
    node: String,
    #[serde(flatten)]
    namespace: &'a Namespace,
    /// Absent if the controller was removed after the namespaces were read.
    controller: Option<&'a Controller>,
}

/// Returns the disks in the order of their controllers and namespace identifiers.
fn disks<'a>(controllers: &'a [Controller], namespaces: &'a [Namespace]) -> Vec<Disk<'a>> {
    let position = |namespace: &Namespace| {
        let mut ids = controllers.iter().map(|each| each.id);
        ids.position(|id| id == namespace.controller_id)
    };
    let mut namespaces: Vec<&Namespace> = namespaces.iter().collect();
    namespaces.sort_by_key(|each| (position(each).unwrap_or(usize::MAX), each.nsid));
    let disk = |namespace: &'a Namespace| Disk {
        node: format!("/dev/{}", namespace.name),
        namespace,
        controller: position(namespace).and_then(|at| controllers.get(at)),
    };
    namespaces.into_iter().map(disk).collect()
}

/// Returns a table, or nothing without disks.
pub(crate) fn normal(controllers: &[Controller], namespaces: &[Namespace]) -> String {
    let head = "NODE NSID SIZE FORMAT STATE SERIAL MODEL FIRMWARE SUBSYSTEM";
    table(head, disks(controllers, namespaces).iter().map(cells))
}

fn cells(disk: &Disk<'_>) -> Vec<String> {
    let (namespace, controller) = (disk.namespace, disk.controller);
    vec![
        disk.node.clone(),
        namespace.nsid.to_string(),
        size(namespace.size),
        format!("{} B", namespace.block_size),
        known(controller.map(|each| each.state)),
        known(controller.and_then(|each| each.serial.as_ref())),
        known(controller.and_then(|each| each.model.as_ref())),
        known(controller.and_then(|each| each.firmware.as_ref())),
        known(controller.map(|each| &each.subsysnqn)),
    ]
}

/// Returns the JSON document.
pub(crate) fn json(controllers: &[Controller], namespaces: &[Namespace]) -> String {
    json_member("namespaces", &disks(controllers, namespaces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::controller::tests::live;
    use crate::model::namespace::tests::disk;

    #[test]
    fn a_table_in_the_order_of_numbers() {
        let mut second = disk();
        second.nsid = 2;
        second.name = "rnvmf0n2".into();
        second.size = 4096;
        second.block_size = 4096;
        assert_eq!(
            normal(&[live()], &[second, disk()]),
            include_str!("golden/list.txt")
        );
    }

    #[test]
    fn disks_are_in_the_order_of_their_controllers() {
        let called = |device: &str, id| Controller {
            device: device.into(),
            id,
            ..live()
        };
        let of = |controller_id, nsid, name: &str| Namespace {
            controller_id,
            nsid,
            name: name.into(),
            ..disk()
        };
        let controllers = [called("rnvmf2", 9), called("rnvmf10", 4)];
        let namespaces = [
            of(4, 2, "rnvmf10n2"),
            of(4, 1, "rnvmf10n1"),
            of(9, 10, "rnvmf2n10"),
        ];
        let text = normal(&controllers, &namespaces);
        let nodes = text.lines().skip(1).map(|line| line.split(' ').next());
        let expected = ["/dev/rnvmf2n10", "/dev/rnvmf10n1", "/dev/rnvmf10n2"];
        assert!(nodes.eq(expected.map(Some)), "{text}");
    }

    #[test]
    fn no_disks_are_no_output() {
        assert_eq!(normal(&[live()], &[]), "");
        assert_eq!(json(&[live()], &[]), "{\"schema\":1,\"namespaces\":[]}\n");
    }

    #[test]
    fn json_is_stable() {
        assert_eq!(json(&[live()], &[disk()]), include_str!("golden/list.json"));
    }

    #[test]
    fn a_disk_outlives_its_controller_in_between() {
        let text = normal(&[], &[disk()]);
        assert!(
            text.contains("/dev/rnvmf0n1  1     1.07 GB  512 B   -"),
            "{text}"
        );
        assert!(!json(&[], &[disk()]).contains("\"controller\":"));
    }
}
