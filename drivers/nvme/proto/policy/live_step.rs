// SPDX-License-Identifier: GPL-2.0

//! Next step of the thread of a live controller.

/// State of a live controller, read when its thread is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LiveInputs {
    /// A reset is requested.
    pub reset_requested: bool,
    /// Removal is requested.
    pub removal_requested: bool,
    /// Another context holds the scan lock.
    pub scan_locked: bool,
    /// The disks have other hardware queues than the connection.
    pub queues_differ: bool,
    /// The result of the scan during a reconnect is not applied yet.
    pub scan_result: bool,
    /// A scan is requested, or its delay ended.
    pub scan_due: bool,
}

/// A step of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiveStep {
    /// Wait to be woken.
    Wait,
    /// End the connection and reconnect.
    Reset,
    /// Remove the controller.
    Remove,
    /// Give the disks the hardware queues of the connection.
    SetQueues,
    /// Apply the result of the scan during the reconnect.
    ApplyScan,
    /// Scan the namespaces.
    Scan,
}

impl LiveInputs {
    /// Returns the next step. All steps except [`Wait`](LiveStep::Wait) and
    /// [`Reset`](LiveStep::Reset) need the scan lock.
    ///
    /// Removal writes back the data that the disks hold. It therefore comes after the steps that
    /// disks need for I/O, and supersedes a reset that is requested as well.
    #[must_use]
    pub const fn step(self) -> LiveStep {
        match self {
            Self {
                reset_requested: true,
                removal_requested: false,
                ..
            } => LiveStep::Reset,
            Self {
                scan_locked: true, ..
            } => LiveStep::Wait,
            Self {
                queues_differ: true,
                ..
            } => LiveStep::SetQueues,
            Self {
                scan_result: true, ..
            } => LiveStep::ApplyScan,
            Self {
                removal_requested: true,
                ..
            } => LiveStep::Remove,
            Self { scan_due: true, .. } => LiveStep::Scan,
            _ => LiveStep::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = LiveInputs> {
        (0..64_u32).map(|bits| {
            let bit = |at: u32| bits & (1 << at) != 0;
            LiveInputs {
                reset_requested: bit(0),
                removal_requested: bit(1),
                scan_locked: bit(2),
                queues_differ: bit(3),
                scan_result: bit(4),
                scan_due: bit(5),
            }
        })
    }

    #[test]
    fn order() {
        let everything = LiveInputs {
            reset_requested: true,
            removal_requested: true,
            scan_locked: false,
            queues_differ: true,
            scan_result: true,
            scan_due: true,
        };
        let mut inputs = everything;
        assert_eq!(inputs.step(), LiveStep::SetQueues);
        inputs.queues_differ = false;
        assert_eq!(inputs.step(), LiveStep::ApplyScan);
        inputs.scan_result = false;
        assert_eq!(inputs.step(), LiveStep::Remove);
        inputs.removal_requested = false;
        assert_eq!(inputs.step(), LiveStep::Reset);
        inputs.reset_requested = false;
        assert_eq!(inputs.step(), LiveStep::Scan);
        inputs.scan_due = false;
        assert_eq!(inputs.step(), LiveStep::Wait);
    }

    #[test]
    fn the_disks_are_left_alone_without_the_lock() {
        for inputs in all().filter(|inputs| inputs.scan_locked) {
            let step = inputs.step();
            assert!(matches!(step, LiveStep::Wait | LiveStep::Reset));
        }
    }

    #[test]
    fn each_step_has_its_cause() {
        for inputs in all() {
            let cause = match inputs.step() {
                LiveStep::Wait => inputs.scan_locked || inputs == LiveInputs::default(),
                LiveStep::Reset => inputs.reset_requested && !inputs.removal_requested,
                LiveStep::Remove => inputs.removal_requested,
                LiveStep::SetQueues => inputs.queues_differ,
                LiveStep::ApplyScan => inputs.scan_result,
                LiveStep::Scan => inputs.scan_due && !inputs.removal_requested,
            };
            assert!(cause, "{inputs:?}");
        }
    }
}
