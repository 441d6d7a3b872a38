// SPDX-License-Identifier: GPL-2.0

//! `rnvmf monitor`: a line for each event.

use super::text::size;
use crate::model::controller::Controller;
use crate::model::event::{Change, Event};
use crate::model::namespace::Namespace;
use crate::output::{json_line, Format};
use crate::uapi::CtrlState;
use serde::Serialize;

/// The subject of a line.
pub(crate) enum MonitorLine<'a> {
    /// All later events are printed.
    Ready,
    /// Events were lost. Lines for all controllers and namespaces follow.
    Lost,
    /// A controller that exists.
    Controller(&'a Controller),
    /// A namespace that exists.
    Namespace(&'a Namespace),
    /// An event.
    Event(&'a Event),
}

/// The JSON document of a line.
#[derive(Serialize)]
struct Document<'a> {
    event: String,
    controller: Option<&'a Controller>,
    namespace: Option<&'a Namespace>,
}

impl MonitorLine<'_> {
    /// Returns the line.
    pub(crate) fn render(&self, format: Format) -> String {
        let (event, controller, namespace) = match *self {
            MonitorLine::Ready => ("ready".to_owned(), None, None),
            MonitorLine::Lost => ("lost".to_owned(), None, None),
            MonitorLine::Controller(controller) => ("ctrl".to_owned(), Some(controller), None),
            MonitorLine::Namespace(namespace) => ("ns".to_owned(), None, Some(namespace)),
            MonitorLine::Event(Event::Controller(change, controller)) => {
                (format!("ctrl-{}", name(*change)), Some(&**controller), None)
            }
            MonitorLine::Event(Event::Namespace(change, namespace)) => {
                (format!("ns-{}", name(*change)), None, Some(&**namespace))
            }
        };
        let document = Document {
            event,
            controller,
            namespace,
        };
        match format {
            Format::Json => json_line(&document) + "\n",
            Format::Normal => normal(&document),
        }
    }
}

/// Returns the name of a change, as in the netlink specification.
fn name(change: Change) -> &'static str {
    match change {
        Change::Added => "add",
        Change::Changed => "change",
        Change::Removed => "del",
    }
}

fn normal(document: &Document<'_>) -> String {
    let mut text = document.event.clone();
    if let Some(controller) = document.controller {
        let Controller {
            device,
            state,
            subsysnqn,
            ..
        } = controller;
        text += &format!(" {device} {state} {} {subsysnqn}", controller.endpoint());
        // A live controller has recovered from its last error.
        let is_live = state.known() == Some(CtrlState::Live);
        if let Some(error) = controller.error.as_ref().filter(|_| !is_live) {
            text += &format!(": {}", error.message);
        }
    }
    if let Some(Namespace {
        name,
        nsid,
        size: bytes,
        read_only,
        ..
    }) = document.namespace
    {
        text += &format!(" {name} nsid {nsid} {}", size(*bytes));
        if *read_only {
            text += ", read-only";
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::tests::rejected;
    use crate::model::controller::tests::{connecting, live};
    use crate::model::namespace::tests::disk;

    fn every_line(format: Format) -> String {
        let dead = Controller {
            state: crate::model::controller::State(5),
            error: Some(rejected()),
            ..connecting()
        };
        let events = [
            Event::Controller(Change::Added, Box::new(connecting())),
            Event::Controller(Change::Changed, Box::new(dead)),
            Event::Namespace(Change::Added, Box::new(disk())),
            Event::Namespace(Change::Changed, Box::new(disk())),
            Event::Namespace(Change::Removed, Box::new(disk())),
            Event::Controller(Change::Removed, Box::new(live())),
        ];
        let mut text = MonitorLine::Ready.render(format);
        text.extend(
            events
                .iter()
                .map(|event| MonitorLine::Event(event).render(format)),
        );
        text += &MonitorLine::Lost.render(format);
        text += &MonitorLine::Controller(&live()).render(format);
        text += &MonitorLine::Namespace(&disk()).render(format);
        text
    }

    #[test]
    fn one_line_each() {
        assert_eq!(
            every_line(Format::Normal),
            include_str!("golden/monitor.txt")
        );
    }

    #[test]
    fn protection_is_told() {
        let protected = Namespace {
            read_only: true,
            ..disk()
        };
        let event = Event::Namespace(Change::Changed, Box::new(protected));
        assert_eq!(
            MonitorLine::Event(&event).render(Format::Normal),
            "ns-change rnvmf0n1 nsid 1 1.07 GB, read-only\n"
        );
    }

    #[test]
    fn json_is_stable() {
        assert_eq!(
            every_line(Format::Json),
            include_str!("golden/monitor.json")
        );
    }
}
