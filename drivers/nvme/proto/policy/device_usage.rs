// SPDX-License-Identifier: GPL-2.0

//! How long a controller uses a device.
//!
//! The queues of an association share the device of its admin queue. Any of them may be disconnected first, by a
//! time-out for example. The controller uses the device until the last one is: the removal of the device looks for the
//! controllers that use it, and waits for their queues.

/// The device `D` of the latest association, whose number is an `N`.
#[derive(Debug)]
pub struct DeviceUsage<N, D> {
    association: N,
    /// Number of connected queues.
    queues: u32,
    device: Option<D>,
}

impl<N: PartialEq, D> DeviceUsage<N, D> {
    /// Returns the usage of a controller that is not connected.
    pub fn new(association: N) -> Self {
        Self {
            association,
            queues: 0,
            device: None,
        }
    }

    /// Begins an association. No queue of an earlier one is connected any more.
    pub fn begin(&mut self, association: N) {
        self.association = association;
        self.queues = 0;
    }

    /// Sets the device on which the queues connect next. Returns the device before.
    pub fn set(&mut self, device: D) -> Option<D> {
        self.device.replace(device)
    }

    /// Counts a queue that was connected.
    pub fn connected(&mut self) {
        self.queues = self.queues.saturating_add(1);
    }

    /// Returns the device to release, if no queue of an association is connected any more. `was_connected` says
    /// whether the queue that was disconnected had been connected. Does nothing for an earlier association.
    pub fn disconnected(&mut self, association: &N, was_connected: bool) -> Option<D> {
        if self.association != *association {
            return None;
        }
        self.queues = self.queues.saturating_sub(u32::from(was_connected));
        match self.queues {
            0 => self.device.take(),
            _ => None,
        }
    }

    /// Returns the device that is in use.
    pub fn device(&self) -> Option<&D> {
        self.device.as_ref()
    }

    /// Returns the device that is in use.
    pub fn device_mut(&mut self) -> Option<&mut D> {
        self.device.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usage of association 1, with this number of queues.
    fn usage(queues: u32) -> DeviceUsage<u32, &'static str> {
        let mut usage = DeviceUsage::new(0);
        usage.begin(1);
        usage.set("rxe0");
        for _ in 0..queues {
            usage.connected();
        }
        usage
    }

    // A time-out disconnects the admin queue while I/O queues are connected.
    #[test]
    fn the_device_is_in_use_until_the_last_queue_is_disconnected() {
        let mut usage = usage(3);
        for _ in 0..2 {
            assert_eq!(usage.disconnected(&1, true), None);
            assert_eq!(usage.device(), Some(&"rxe0"));
        }
        assert_eq!(usage.disconnected(&1, true), Some("rxe0"));
        assert_eq!(usage.device(), None);
    }

    // A queue may be disconnected by several threads.
    #[test]
    fn a_queue_counts_once() {
        let mut usage = usage(2);
        assert_eq!(usage.disconnected(&1, true), None);
        assert_eq!(usage.disconnected(&1, false), None);
        assert_eq!(usage.device(), Some(&"rxe0"));
    }

    // The connect of the admin queue failed after it had acquired the device.
    #[test]
    fn a_device_without_queues_is_released() {
        let mut usage = usage(0);
        assert_eq!(usage.disconnected(&1, false), Some("rxe0"));
    }

    // The thread of a time-out was late: the controller is connected again.
    #[test]
    fn a_queue_of_an_earlier_association_releases_nothing() {
        let mut usage = usage(1);
        usage.begin(2);
        usage.connected();
        assert_eq!(usage.disconnected(&1, true), None);
        assert_eq!(usage.device(), Some(&"rxe0"));
        assert_eq!(usage.disconnected(&2, true), Some("rxe0"));
    }
}
