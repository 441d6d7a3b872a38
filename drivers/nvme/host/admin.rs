// SPDX-License-Identifier: GPL-2.0

//! Admin commands, one at a time: of the controller's thread, or by a channel of the admin queue.

use crate::{
    ctrl_error::CtrlError,
    disk::{
        Io,
        Queue, //
    },
    keep_alive::KeepAliveTimer,
    uapi::ErrorStage, //
};
use core::num::NonZeroU16;
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use nvme_proto::{
    format::{
        async_event::AsyncEventConfig,
        effects_log::EffectsLog,
        identify,
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
        limits::queue,
        permission::IoPermissions, //
    },
};
use nvme_rdma_transport::{
    admin_channel::AdminChannel,
    queue::{CommandData, CommandError, Reply},
    ulp::Waiter, //
};
use rrdma::{
    errno,
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

/// How long a command may take, as in the C host.
pub(crate) const COMMAND: Msecs = Msecs::from_secs(60);

/// How long we wait for an answer to our taking leave. A peer that has gone gives none, and nobody
/// may have noticed yet.
const SHUTDOWN_TIMEOUT: Msecs = Msecs::new(500);

/// Between two looks at a controller that is not there yet.
const POLL: Msecs = Msecs::new(20);

/// Who sends admin commands.
#[derive(Clone, Copy)]
pub(crate) enum Sender<'a> {
    /// The controller's thread, which owns the connection.
    Thread(ThreadSender<'a>),
    /// A user or scan work. There may be no connection.
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

impl ThreadSender<'_> {
    /// Sends a keep-alive, and waits for its response until `deadline`. Sleeps.
    pub(crate) fn keep_alive(&self, deadline: Deadline) -> Result<(), CtrlError> {
        self.keep_alive.restart();
        let admin = Admin {
            sender: Sender::Thread(*self),
            deadline: Deadline::after(COMMAND).min(deadline),
        };
        match admin.keep_alive() {
            // Removal is requested, which the caller sees.
            Ok(()) | Err(CommandError::Cancelled) => Ok(()),
            Err(CommandError::ConnError(error)) => Err(error.into()),
            Err(error) => {
                let what = "keep-alive";
                Err(CtrlError::from_command(ErrorStage::KeepAlive, error, what))
            }
        }
    }

    /// Sends a keep-alive between other commands, if it is due; those must be over by `deadline`.
    /// Sleeps.
    fn keep_alive_if_due(&self, deadline: Deadline) -> Result<(), CtrlError> {
        if self.keep_alive.due().left() > Msecs::new(0) {
            return Ok(());
        }
        let limit = Deadline::after(self.keep_alive.timeout());
        self.keep_alive(limit.min(deadline))
    }
}

/// Whether the target accepts an optional feature.
pub(crate) enum FeatureReply {
    Accepted,
    /// It refuses, for this reason, which is no failure of the controller.
    Refused(CtrlError),
}

impl FeatureReply {
    /// Takes a refusal by the target for an answer.
    fn from_reply(reply: Result<Reply, CtrlError>) -> Result<Self, CtrlError> {
        match reply {
            Ok(_) => Ok(Self::Accepted),
            Err(error) if error.nvme_status.is_some() => Ok(Self::Refused(error)),
            Err(error) => Err(error),
        }
    }
}

/// The admin queue, until a deadline.
#[derive(Clone, Copy)]
pub(crate) struct Admin<'a> {
    pub(crate) sender: Sender<'a>,
    pub(crate) deadline: Deadline,
}

impl Admin<'_> {
    /// Sends a command and waits for its response. Sleeps.
    pub(crate) fn send(
        &self,
        command: Command,
        data: Option<CommandData>,
    ) -> Result<Reply, CommandError> {
        let limit = self.deadline.left().min(COMMAND);
        match self.sender {
            Sender::Thread(ThreadSender { queue, waiter, .. }) => {
                Queue::execute(queue.queue_pair(), waiter, command, data, limit)
            }
            Sender::Channel(channel) => channel.execute(command, data, limit),
        }
    }

    /// Sends a command that has to succeed; `what` it is for.
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

    /// Identifies something: 4096 bytes.
    pub(crate) fn identify(&self, what: Identify, of: &str) -> Result<Buffer, CtrlError> {
        let stage = ErrorStage::Identify;
        let buffer = Buffer::new(Identify::DATA_SIZE, GFP_KERNEL)
            .map_err(|error| CtrlError::kernel(stage, error, of))?;
        let data = Some(CommandData {
            buffer,
            direction: Direction::FromDevice,
        });
        let reply = self.command(stage, of, Command::identify(what), data)?;
        reply.data.ok_or_else(|| CtrlError::kernel(stage, EIO, of))
    }

    /// Identifies something that a controller need not have; `None` if it has none.
    pub(crate) fn identify_optional(&self, what: Identify) -> Result<Option<Buffer>, CtrlError> {
        match self.identify(what, "identify") {
            Ok(data) => Ok(Some(data)),
            Err(failure) if failure.is_lack() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads part of a log page.
    pub(crate) fn log_page(
        &self,
        stage: ErrorStage,
        page: LogPage,
        what: &str,
    ) -> Result<Buffer, CtrlError> {
        let buffer = usize::try_from(page.length())
            .map_err(Error::from)
            .and_then(|length| Buffer::new(length, GFP_KERNEL))
            .map_err(|error| CtrlError::kernel(stage, error, what))?;
        let data = Some(CommandData {
            buffer,
            direction: Direction::FromDevice,
        });
        let reply = self.command(stage, what, Command::get_log_page(page), data)?;
        reply
            .data
            .ok_or_else(|| CtrlError::kernel(stage, EIO, what))
    }

    /// Asks for I/O queues, and answers how many there may be.
    pub(crate) fn request_queues(&self, wanted: NonZeroU16) -> Result<NonZeroU16, CtrlError> {
        let command = Command::set_feature(Feature::NumberOfQueues(wanted));
        let what = "asking for I/O queues";
        let reply = self.command(ErrorStage::Queues, what, command, None)?;
        Ok(queue::granted(wanted, reply.completion.result32()))
    }

    /// Enables asynchronous events.
    pub(crate) fn enable_events(
        &self,
        events: AsyncEventConfig,
    ) -> Result<FeatureReply, CtrlError> {
        let command = Command::set_feature(Feature::AsyncEvents(events));
        let what = "asking for events";
        FeatureReply::from_reply(self.command(ErrorStage::Enable, what, command, None))
    }

    /// Says that commands are sent again after the delays that the controller asks for; one that
    /// refuses asks for none, which is no failure.
    pub(crate) fn keep_retry_delays(&self) -> Result<FeatureReply, CtrlError> {
        let (stage, what) = (ErrorStage::Enable, "asking for delays of retries");
        let fail = |error| CtrlError::kernel(stage, error, what);
        let mut buffer = Buffer::new(HostBehavior::SIZE, GFP_KERNEL).map_err(fail)?;
        let block: &mut [u8; HostBehavior::SIZE] =
            buffer.bytes_mut().try_into().map_err(|_| fail(EINVAL))?;
        HostBehavior {
            advanced_retry: true,
        }
        .encode(block);
        let command = Command::set_feature(Feature::HostBehavior);
        FeatureReply::from_reply(self.command(
            stage,
            what,
            command,
            Some(CommandData {
                buffer,
                direction: Direction::ToDevice,
            }),
        ))
    }

    /// Reads which namespaces changed, so that the next change is an event again; `None` from who
    /// has no such list. All namespaces are looked at anyway: a list that lies hides nothing.
    pub(crate) fn take_changed_namespaces(&self) -> Result<Option<Buffer>, CtrlError> {
        let (stage, what) = (ErrorStage::Namespaces, "list of changed namespaces");
        let page = LogPage::new(
            LogPage::CHANGED_NAMESPACES,
            0,
            LogPage::CHANGED_NAMESPACES_SIZE,
        )
        .map_err(|why| CtrlError::new(stage, EINVAL, format_args!("{what}: {why}")))?;
        match self.log_page(stage, page, what) {
            Ok(list) => Ok(Some(list)),
            // A target without this log may report a change all the same.
            Err(failure) if failure.nvme_status.is_some() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Tells the target that we live, if nobody else does so meanwhile and it is time.
    pub(crate) fn keep_alive_if_due(&self) -> Result<(), CtrlError> {
        match self.sender {
            Sender::Thread(thread) => thread.keep_alive_if_due(self.deadline),
            Sender::Channel(_) => Ok(()),
        }
    }

    /// Tells the target that we live.
    pub(crate) fn keep_alive(&self) -> Result<(), CommandError> {
        let reply = self.send(Command::keep_alive(), None)?;
        match reply.completion.status().is_success() {
            true => Ok(()),
            false => Err(CommandError::Code(EIO)),
        }
    }

    pub(crate) fn capabilities(&self) -> Result<Capabilities, CtrlError> {
        Ok(Capabilities(self.property(Property::Capabilities)?))
    }

    pub(crate) fn version(&self) -> Result<Version, CtrlError> {
        Ok(Version(self.property32(Property::Version)?))
    }

    /// Configures and enables the controller, and waits until it is ready.
    pub(crate) fn enable(&self, capabilities: Capabilities) -> Result<Configuration, CtrlError> {
        let stage = ErrorStage::Enable;
        let configuration = capabilities
            .configure()
            .map_err(|why| CtrlError::target(stage, format_args!("unusable controller: {why}")))?;
        self.configure(configuration.get())?;
        let timeouts = match capabilities.has_ready_timeouts() {
            true => Some(ReadyTimeouts(self.property32(Property::ReadyTimeouts)?)),
            false => None,
        };
        self.configure(configuration.enabled().get())?;
        let limit = Msecs::new(capabilities.ready_timeout_ms(timeouts));
        match self.await_status(ControllerStatus::enabling, Deadline::after(limit))? {
            Progress::Done => Ok(configuration),
            Progress::Failed => Err(CtrlError::target(
                stage,
                format_args!("the controller reports a fatal status"),
            )),
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

    /// Shuts the controller down in good order, as far as the deadline allows; who does not even
    /// answer is not waited for.
    pub(crate) fn shut_down(&self, configuration: Configuration) -> Result<(), CtrlError> {
        let deadline = self.deadline.min(Deadline::after(SHUTDOWN_TIMEOUT));
        Admin { deadline, ..*self }.configure(configuration.enabled().shut_down().get())?;
        self.await_status(ControllerStatus::shutting_down, self.deadline)?;
        Ok(())
    }

    /// Disables the controller, which ends all that it has of us, and waits until it is.
    pub(crate) fn disable(&self, configuration: Configuration) -> Result<(), CtrlError> {
        self.configure(configuration.disabled().get())?;
        match self.await_status(ControllerStatus::disabling, self.deadline)? {
            Progress::Done => Ok(()),
            Progress::Wait | Progress::Failed => Err(CtrlError::target(
                ErrorStage::Enable,
                format_args!("the controller is still enabled"),
            )),
        }
    }

    fn configure(&self, value: u64) -> Result<(), CtrlError> {
        let command = Command::property_set(Property::Configuration, value);
        let what = "configuring the controller";
        self.command(ErrorStage::Enable, what, command, None)?;
        Ok(())
    }

    /// Asks for the status until `progress` is made or the time is over.
    fn await_status(
        &self,
        progress: fn(ControllerStatus) -> Progress,
        deadline: Deadline,
    ) -> Result<Progress, CtrlError> {
        let deadline = deadline.min(self.deadline);
        loop {
            let status = ControllerStatus(self.property32(Property::Status)?);
            match (progress(status), deadline.left()) {
                (Progress::Wait, left) if left > Msecs::new(0) => {
                    self.pause(left.min(POLL));
                }
                (progress, _) => return Ok(progress),
            }
        }
    }

    /// Waits before the next look at the status.
    fn pause(&self, limit: Msecs) {
        match self.sender {
            Sender::Thread(thread) => thread.waiter.wait(limit),
            Sender::Channel(_) => fsleep(Delta::from_millis(limit.get().into())),
        }
    }

    fn property(&self, property: Property) -> Result<u64, CtrlError> {
        let command = Command::property_get(property);
        let what = "reading a property";
        let reply = self.command(ErrorStage::Enable, what, command, None)?;
        Ok(reply.completion.result)
    }

    fn property32(&self, property: Property) -> Result<u32, CtrlError> {
        Ok((self.property(property)? & 0xffff_ffff) as u32)
    }

    /// What a command does to others, by the target's log if it has one. It may take as long as
    /// the command, whose `limit` this is.
    pub(crate) fn effects(
        &self,
        identity: &identify::Controller,
        opcode: u8,
        limit: Msecs,
    ) -> Result<CommandEffects, CommandError> {
        match self.effects_log(ErrorStage::Io, identity) {
            Ok(Some(log)) => Ok(CommandEffects::of_admin(
                opcode,
                EffectsLog::new(log.bytes()),
            )),
            Ok(None) => Ok(CommandEffects::of_admin(opcode, EffectsLog::default())),
            Err(CtrlError { error, .. }) if error == errno::ECANCELED => {
                Err(CommandError::Cancelled)
            }
            // It was not the user's turn.
            Err(CtrlError { error, .. }) if error == ETIMEDOUT => {
                Err(CommandError::TimedOut(limit))
            }
            Err(failure) => Err(CommandError::Code(failure.error)),
        }
    }

    /// Permissions for users' commands to a namespace, by the same log.
    pub(crate) fn io_permissions(
        &self,
        identity: &identify::Controller,
    ) -> Result<IoPermissions, CtrlError> {
        Ok(match self.effects_log(ErrorStage::Identify, identity)? {
            Some(log) => IoPermissions::from_log(EffectsLog::new(log.bytes())),
            None => IoPermissions::default(),
        })
    }

    /// The target's log of commands and their effects, if it has one.
    fn effects_log(
        &self,
        stage: ErrorStage,
        identity: &identify::Controller,
    ) -> Result<Option<Buffer>, CtrlError> {
        if !identity.has_effects_log() {
            return Ok(None);
        }
        let what = "log of commands and their effects";
        let page = LogPage::new(LogPage::EFFECTS, 0, LogPage::EFFECTS_SIZE)
            .map_err(|why| CtrlError::new(stage, EINVAL, format_args!("{what}: {why}")))?;
        match self.log_page(stage, page, what) {
            Ok(log) => Ok(Some(log)),
            // It says that it has one, and then refuses to show it.
            Err(failure) if failure.nvme_status.is_some() => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}
