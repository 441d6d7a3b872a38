// SPDX-License-Identifier: GPL-2.0

//! `rnvmf list`: disks.

use super::text::{row, size, table};
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;
use crate::output::json_line;
use serde::Serialize;

/// A disk with its controller, which may have gone between the two questions.
struct Disk<'a> {
    namespace: &'a Namespace,
    controller: Option<&'a Controller>,
}

fn disks<'a>(controllers: &'a [Controller], namespaces: &'a [Namespace]) -> Vec<Disk<'a>> {
    let position = |namespace: &Namespace| {
        let mut ids = controllers.iter().map(|each| each.id);
        ids.position(|id| id == namespace.controller_id)
    };
    let mut namespaces: Vec<&Namespace> = namespaces.iter().collect();
    namespaces.sort_by_key(|each| (position(each).unwrap_or(usize::MAX), each.nsid));
    let disk = |namespace| Disk {
        namespace,
        controller: position(namespace).and_then(|at| controllers.get(at)),
    };
    namespaces.into_iter().map(disk).collect()
}

/// A table, or nothing where there are no disks.
pub(crate) fn normal(controllers: &[Controller], namespaces: &[Namespace]) -> String {
    let disks = disks(controllers, namespaces);
    if disks.is_empty() {
        return String::new();
    }
    let mut rows = vec![row([
        "NODE",
        "NSID",
        "SIZE",
        "FORMAT",
        "STATE",
        "SERIAL",
        "MODEL",
        "FIRMWARE",
        "SUBSYSTEM",
    ])];
    rows.extend(disks.iter().map(cells));
    table(&rows)
}

fn cells(disk: &Disk<'_>) -> Vec<String> {
    let Disk {
        namespace,
        controller,
    } = disk;
    let known = |text: Option<&String>| text.map_or("-".to_owned(), String::clone);
    vec![
        format!("/dev/{}", namespace.name),
        namespace.nsid.to_string(),
        size(namespace.size),
        format!("{} B", namespace.block_size),
        controller.map_or("-".into(), |each| each.state.to_string()),
        known(controller.and_then(|each| each.serial.as_ref())),
        known(controller.and_then(|each| each.model.as_ref())),
        known(controller.and_then(|each| each.firmware.as_ref())),
        known(controller.map(|each| &each.subsysnqn)),
    ]
}

#[derive(Serialize)]
struct Document<'a> {
    namespaces: Vec<DiskDocument<'a>>,
}

#[derive(Serialize)]
struct DiskDocument<'a> {
    node: String,
    #[serde(flatten)]
    namespace: &'a Namespace,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<&'a Controller>,
}

/// One line.
pub(crate) fn json(controllers: &[Controller], namespaces: &[Namespace]) -> String {
    let disks = disks(controllers, namespaces);
    let entries = disks.into_iter().map(|disk| DiskDocument {
        node: format!("/dev/{}", disk.namespace.name),
        namespace: disk.namespace,
        controller: disk.controller,
    });
    json_line(&Document {
        namespaces: entries.collect(),
    }) + "\n"
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
