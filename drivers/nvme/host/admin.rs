// SPDX-License-Identifier: GPL-2.0

//! Admin commands, one at a time: sent by the controller's thread, or through a channel of the
//! admin queue. The timer of keep-alives.

use crate::{
    ctrl_error::CtrlError,
    uapi::ErrorStage, //
};
use core::num::NonZeroU16;
use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use nvme_proto::{
    format::{
        async_event::AsyncEventConfig,
        effects_log::EffectsLog,
        identify::{
            self,
            KeepAliveMode, //
        },
        property::{
            Capabilities,
            Configuration,
            ControllerStatus,
            Progress,
            Property,
            ReadyTimeouts,
            Version, //
        },
        sqe::{
            Command,
            Feature,
            HostBehavior,
            Identify,
            LogPage, //
        },
    },
    policy::{
        effects::CommandEffects,
        keep_alive::KeepAlive,
        limits::queue,
        permission::IoPermissions, //
    },
};
use nvme_rdma_transport::{
    admin_channel::AdminChannel,
    queue::{CommandData, CommandError, Reply},
    ulp::Waiter, //
};
use rnvmf_disk::{
    Io,
    Queue, //
};
use rrdma::{
    rdma::{
        cm::Connected,
        dma::Direction, //
    },
    scatter::Buffer,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Time-out of an admin command, as in the C host (`admin_timeout`).
pub(crate) const COMMAND: Msecs = Msecs::from_secs(60);

/// Time-out for the response to a shutdown request. A target that is gone sends none, and the loss
/// may not be detected yet.
const SHUTDOWN_TIMEOUT: Msecs = Msecs::new(500);

/// Time-out of a read of the controller status (`CSTS`) during a shutdown. The shutdown itself may take longer.
const SHUTDOWN_STATUS_TIMEOUT: Msecs = Msecs::from_secs(2);

/// Interval between two reads of the controller status (`CSTS`).
const POLL: Msecs = Msecs::new(20);

/// The sender of admin commands.
#[derive(Clone, Copy)]
pub(crate) enum Sender<'a> {
    /// The controller's thread, which owns the connection.
    Thread(ThreadSender<'a>),
    /// User space or scan work. The connection may be down.
    Channel(&'a AdminChannel<Io>),
}

/// The controller's thread as the sender of admin commands.
#[derive(Clone, Copy)]
pub(crate) struct ThreadSender<'a> {
    pub(crate) queue: &'a Connected<Queue>,
    /// How the thread waits for responses.
    pub(crate) waiter: &'a dyn Waiter,
    pub(crate) keep_alive: &'a KeepAliveTimer,
}

/// When the next keep-alive is due. Its lock is a leaf.
#[pin_data]
pub(crate) struct KeepAliveTimer {
    /// The keep-alive time-out of the controller, in milliseconds; 0 for none.
    timeout_ms: u32,
    #[pin]
    due: Mutex<Deadline>,
}

impl KeepAliveTimer {
    /// A timer that has not been started.
    pub(crate) fn new(timeout_ms: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            timeout_ms,
            due <- new_mutex!(Deadline::NEVER, "rnvmf::KeepAliveTimer::due"),
        })
    }

    /// Restarts the timer, for a command that restarts the target's timer. May sleep.
    pub(crate) fn restart(&self) {
        let keep_alive = KeepAlive::new(self.timeout_ms, KeepAliveMode::CommandBased);
        let next = keep_alive.map(|k| Deadline::after(Msecs::new(k.period_ms())));
        *self.due.lock() = next.unwrap_or(Deadline::NEVER);
    }

    /// Returns the keep-alive time-out of the controller; 0 for none.
    pub(crate) fn timeout(&self) -> Msecs {
        Msecs::new(self.timeout_ms)
    }

    /// Returns when the next keep-alive is due. May sleep.
    pub(crate) fn due(&self) -> Deadline {
        *self.due.lock()
    }
}

/// The target's reply to a command for something optional, or its refusal: an error status.
pub(crate) type Optional<T> = Result<T, CtrlError>;

/// Separates refusals from other errors.
fn optional<T>(reply: Result<T, CtrlError>) -> Result<Optional<T>, CtrlError> {
    match reply {
        Err(error) if error.nvme_status.is_none() => Err(error),
        reply => Ok(reply),
    }
}

/// An admin queue, with a sender and time limits for its commands.
#[derive(Clone, Copy)]
pub(crate) struct Admin<'a> {
    pub(crate) sender: Sender<'a>,
    /// For all commands.
    pub(crate) deadline: Deadline,
    /// For each command.
    pub(crate) timeout: Msecs,
}

impl Admin<'_> {
    /// Sends a command and waits for its response. Sleeps.
    pub(crate) fn send(
        &self,
        command: Command,
        data: Option<CommandData>,
    ) -> Result<Reply, CommandError> {
        let limit = self.deadline.left().min(self.timeout);
        match self.sender {
            Sender::Thread(ThreadSender { queue, waiter, .. }) => {
                Queue::execute(queue.queue_pair(), waiter, command, data, limit)
            }
            Sender::Channel(channel) => channel.execute(command, data, limit),
        }
    }

    /// Sends a command that must succeed. `what` names the command in errors. Sleeps.
    fn command(
        &self,
        stage: ErrorStage,
        what: &str,
        command: Command,
        data: Option<CommandData>,
    ) -> Result<Reply, CtrlError> {
        let reply = self
            .send(command, data)
            .map_err(|error| CtrlError::from_command(stage, error, what))?;
        match reply.completion.status() {
            status if status.is_success() => Ok(reply),
            status => Err(CtrlError::from_status(stage, status, what)),
        }
    }

    /// Sends Identify, and returns its 4096 bytes. `of` names the data in errors. Sleeps.
    pub(crate) fn identify(&self, what: Identify, of: &str) -> Result<Buffer, CtrlError> {
        let command = Command::identify(what);
        self.read(ErrorStage::Identify, of, command, Identify::DATA_SIZE)
    }

    /// Sends an optional Identify; `None` if the controller does not support it. Sleeps.
    pub(crate) fn identify_optional(&self, what: Identify) -> Result<Option<Buffer>, CtrlError> {
        match self.identify(what, "identify") {
            Ok(data) => Ok(Some(data)),
            Err(failure) if failure.is_lack() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads part of a log page. Sleeps.
    pub(crate) fn log_page(
        &self,
        stage: ErrorStage,
        page: LogPage,
        what: &str,
    ) -> Result<Buffer, CtrlError> {
        let length = usize::try_from(page.length()).unwrap_or(usize::MAX);
        self.read(stage, what, Command::get_log_page(page), length)
    }

    /// Reads a log page; `None` if the target refuses, because it may announce a log that it lacks.
    fn optional_log_page(
        &self,
        stage: ErrorStage,
        page: LogPage,
        what: &str,
    ) -> Result<Option<Buffer>, CtrlError> {
        Ok(optional(self.log_page(stage, page, what))?.ok())
    }

    /// Sends a command that returns `length` bytes. `what` names the command in errors.
    fn read(
        &self,
        stage: ErrorStage,
        what: &str,
        command: Command,
        length: usize,
    ) -> Result<Buffer, CtrlError> {
        let fail = |error| CtrlError::kernel(stage, error, what);
        let data = CommandData {
            buffer: Buffer::new(length, GFP_KERNEL).map_err(fail)?,
            direction: Direction::FromDevice,
        };
        let reply = self.command(stage, what, command, Some(data))?;
        reply.data.ok_or_else(|| fail(EIO))
    }

    /// Requests I/O queues, and returns how many the controller grants. Sleeps.
    pub(crate) fn request_queues(&self, wanted: NonZeroU16) -> Result<NonZeroU16, CtrlError> {
        let command = Command::set_feature(Feature::NumberOfQueues(wanted));
        let what = "Set Features (Number of Queues)";
        let reply = self.command(ErrorStage::Queues, what, command, None)?;
        Ok(queue::granted(wanted, reply.completion.result32()))
    }

    /// Enables asynchronous events. Sleeps.
    pub(crate) fn enable_events(
        &self,
        events: AsyncEventConfig,
    ) -> Result<Optional<Reply>, CtrlError> {
        let command = Command::set_feature(Feature::AsyncEvents(events));
        let what = "Set Features (Asynchronous Event Configuration)";
        optional(self.command(ErrorStage::Enable, what, command, None))
    }

    /// Enables command retry delays (`ACRE`). A controller that refuses this requests no delays.
    /// Sleeps.
    pub(crate) fn keep_retry_delays(&self) -> Result<Optional<Reply>, CtrlError> {
        let (stage, what) = (ErrorStage::Enable, "Set Features (Host Behavior Support)");
        let fail = |error| CtrlError::kernel(stage, error, what);
        let mut buffer = Buffer::new(HostBehavior::SIZE, GFP_KERNEL).map_err(fail)?;
        let block: &mut [u8; HostBehavior::SIZE] =
            buffer.bytes_mut().try_into().map_err(|_| fail(EINVAL))?;
        HostBehavior {
            advanced_retry: true,
        }
        .encode(block);
        let command = Command::set_feature(Feature::HostBehavior);
        let data = CommandData {
            buffer,
            direction: Direction::ToDevice,
        };
        optional(self.command(stage, what, command, Some(data)))
    }

    /// Reads the Changed Namespace List, which re-arms the event; `None` if the target has no such
    /// log. A scan reads all namespaces, so a wrong list hides no change. Sleeps.
    pub(crate) fn take_changed_namespaces(&self) -> Result<Option<Buffer>, CtrlError> {
        let (stage, what) = (ErrorStage::Namespaces, "Changed Namespace List");
        // A target without this log may report changes nevertheless.
        self.optional_log_page(stage, LogPage::CHANGED_NAMESPACES, what)
    }

    /// Reads the ANA log, which re-arms its event. Its data is not used: statuses tell the state of
    /// a namespace. Sleeps.
    pub(crate) fn take_ana_change(&self) -> Result<(), CtrlError> {
        let (stage, what) = (ErrorStage::Namespaces, "Asymmetric Namespace Access log");
        self.optional_log_page(stage, LogPage::ANA, what)?;
        Ok(())
    }

    /// Sends a keep-alive if one is due. Does nothing for a channel, because the controller's
    /// thread sends keep-alives meanwhile. Sleeps.
    pub(crate) fn keep_alive_if_due(&self) -> Result<(), CtrlError> {
        match self.sender {
            Sender::Thread(ThreadSender { keep_alive, .. })
                if keep_alive.due().left() == Msecs::new(0) =>
            {
                self.keep_alive(keep_alive)
            }
            _ => Ok(()),
        }
    }

    /// Sends a keep-alive, and restarts `timer`. Sleeps.
    pub(crate) fn keep_alive(&self, timer: &KeepAliveTimer) -> Result<(), CtrlError> {
        timer.restart();
        // A limit, not a deadline, so that the message has the keep-alive time-out and no remainder of it.
        let admin = Admin {
            timeout: timer.timeout().min(self.timeout),
            ..*self
        };
        let what = "keep-alive";
        let error = match admin.send(Command::keep_alive(), None) {
            Ok(reply) => match reply.completion.status() {
                status if status.is_success() => return Ok(()),
                status => return Err(CtrlError::from_status(ErrorStage::KeepAlive, status, what)),
            },
            // Removal is requested; the caller checks for it.
            Err(CommandError::Cancelled) => return Ok(()),
            Err(CommandError::ConnError(error)) => return Err(error.into()),
            Err(error) => error,
        };
        Err(CtrlError::from_command(ErrorStage::KeepAlive, error, what))
    }

    fn capabilities(&self) -> Result<Capabilities, CtrlError> {
        Ok(Capabilities(self.property(Property::Capabilities)?))
    }

    pub(crate) fn version(&self) -> Result<Version, CtrlError> {
        Ok(Version(self.property32(Property::Version)?))
    }

    /// Configures and enables the controller, and waits until it is ready. Returns its capabilities
    /// and configuration. Sleeps.
    pub(crate) fn enable(&self) -> Result<(Capabilities, Configuration), CtrlError> {
        let stage = ErrorStage::Enable;
        let configuration = self
            .capabilities()?
            .configure()
            .map_err(CtrlError::unusable(stage, "unusable controller"))?;
        self.configure(configuration.get())?;
        // CAP.TO and CAP.MQES may depend on the configuration (Base specification, CC.CRIME).
        let capabilities = self.capabilities()?;
        let timeouts = match capabilities.has_ready_timeouts() {
            true => Some(ReadyTimeouts(self.property32(Property::ReadyTimeouts)?)),
            false => None,
        };
        self.configure(configuration.enabled().get())?;
        let limit = Msecs::new(capabilities.ready_timeout_ms(timeouts));
        match self.await_status(ControllerStatus::enabling, Deadline::after(limit))? {
            Progress::Done => Ok((capabilities, configuration)),
            Progress::Failed => {
                let why = format_args!("controller fatal status (CSTS.CFS)");
                Err(CtrlError::target(stage, why))
            }
            Progress::Wait => {
                let limit = limit.get();
                Err(CtrlError::new(
                    stage,
                    ETIMEDOUT,
                    format_args!("the controller did not become ready within {limit} ms"),
                ))
            }
        }
    }

    /// Requests a normal shutdown, and waits for its completion until the deadline. Does not wait if the
    /// target does not respond to the request, or to a read of the status. Sleeps.
    pub(crate) fn shut_down(&self, configuration: Configuration) -> Result<(), CtrlError> {
        let deadline = self.deadline.min(Deadline::after(SHUTDOWN_TIMEOUT));
        Admin { deadline, ..*self }.configure(configuration.enabled().shut_down().get())?;
        let reads = Admin {
            timeout: self.timeout.min(SHUTDOWN_STATUS_TIMEOUT),
            ..*self
        };
        match reads.await_status(ControllerStatus::shutting_down, self.deadline)? {
            Progress::Done => Ok(()),
            Progress::Wait | Progress::Failed => {
                let why = format_args!("CSTS.SHST did not become complete");
                Err(CtrlError::target(ErrorStage::Enable, why))
            }
        }
    }

    /// Disables the controller, which deletes its queues, and waits for its completion. Sleeps.
    pub(crate) fn disable(&self, configuration: Configuration) -> Result<(), CtrlError> {
        self.configure(configuration.disabled().get())?;
        match self.await_status(ControllerStatus::disabling, self.deadline)? {
            Progress::Done => Ok(()),
            Progress::Wait | Progress::Failed => {
                let why = format_args!("the controller did not become disabled");
                Err(CtrlError::target(ErrorStage::Enable, why))
            }
        }
    }

    fn configure(&self, value: u64) -> Result<(), CtrlError> {
        let command = Command::property_set(Property::Configuration, value);
        let what = "Property Set (CC)";
        self.command(ErrorStage::Enable, what, command, None)?;
        Ok(())
    }

    /// Polls the status until `progress` is more than `Wait` or the deadline expires.
    fn await_status(
        &self,
        progress: fn(ControllerStatus) -> Progress,
        deadline: Deadline,
    ) -> Result<Progress, CtrlError> {
        let deadline = deadline.min(self.deadline);
        loop {
            let status = ControllerStatus(self.property32(Property::Status)?);
            match progress(status) {
                Progress::Wait => self.pause(deadline.left().min(POLL)),
                progress => return Ok(progress),
            }
            if deadline.left() == Msecs::new(0) {
                return Ok(Progress::Wait);
            }
        }
    }

    /// Sleeps before the next read of the status.
    fn pause(&self, limit: Msecs) {
        match self.sender {
            Sender::Thread(thread) => thread.waiter.wait(limit),
            Sender::Channel(_) => fsleep(Delta::from_millis(limit.get().into())),
        }
    }

    fn property(&self, property: Property) -> Result<u64, CtrlError> {
        let command = Command::property_get(property);
        let what = "Property Get";
        let reply = self.command(ErrorStage::Enable, what, command, None)?;
        Ok(reply.completion.result)
    }

    fn property32(&self, property: Property) -> Result<u32, CtrlError> {
        Ok((self.property(property)? & 0xffff_ffff) as u32)
    }

    /// Returns the effects of a command, from the target's effects log if it has one. `limit` is
    /// the time-out of the command, for the error. Sleeps.
    pub(crate) fn effects(
        &self,
        identity: &identify::Controller,
        opcode: u8,
        limit: Msecs,
    ) -> Result<CommandEffects, CommandError> {
        let effects = |log: EffectsLog<'_>| CommandEffects::of_admin(opcode, log);
        self.with_effects_log(ErrorStage::Io, identity, effects)
            .map_err(|failure| match failure.error {
                _ if failure.is_cancelled() => CommandError::Cancelled,
                // Other commands kept the channel busy.
                ETIMEDOUT => CommandError::TimedOut(limit),
                error => CommandError::Code(error),
            })
    }

    /// Returns the permissions for passthrough commands to a namespace, from the effects log.
    /// Sleeps.
    pub(crate) fn io_permissions(
        &self,
        identity: &identify::Controller,
    ) -> Result<IoPermissions, CtrlError> {
        self.with_effects_log(ErrorStage::Identify, identity, IoPermissions::from_log)
    }

    /// Calls `look` with the Commands Supported and Effects log; with an empty one if the target
    /// has none.
    fn with_effects_log<R>(
        &self,
        stage: ErrorStage,
        identity: &identify::Controller,
        look: impl FnOnce(EffectsLog<'_>) -> R,
    ) -> Result<R, CtrlError> {
        let what = "Commands Supported and Effects log";
        let log = match identity.has_effects_log() {
            true => self.optional_log_page(stage, LogPage::EFFECTS, what)?,
            false => None,
        };
        let page = log.as_ref().map_or(&[][..], Buffer::bytes);
        Ok(look(EffectsLog::new(page)))
    }
}
