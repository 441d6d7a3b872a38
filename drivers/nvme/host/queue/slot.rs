// SPDX-License-Identifier: GPL-2.0

//! One tag of a queue: the state of its command.

use super::{
    capsule::{
        self,
        Capsule,
        InFlightWr,
        Payload, //
    },
    Queue,
};
use crate::trace::{self};
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
};
use nvme_proto::{
    format::{
        cid::{
            CommandId,
            Generation,
            Tag, //
        },
        cqe,
        sgl::{
            Invalidate,
            Sgl, //
        },
        sqe::Command,
    },
    policy::request_state::{
        RemoteInvalidation,
        RequestAction,
        RequestEvent,
        RequestState, //
    },
};
use nvme_rdma_transport::{
    conn_error::ConnError,
    stats::{AnsweredCommand, CommandStats, DataMode, PostPosition},
    trace::{CommandEnd, EndedCommand, QueuedCommand},
};
use rrdma::{
    errno,
    rdma::{
        cq::{
            Failure,
            Invalidation, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::Region,
        pd::ProtectionDomain,
        qp::QueuePair,
        wr::{
            Operation,
            Unposted, //
        },
    },
    sync::{
        Claim,
        ClaimGuard, //
    },
};

/// A tag.
pub(crate) struct Slot<D: Payload> {
    /// The submitter claims it, and keeps it for the completions of the command, which resume the
    /// claim one at a time; the last one frees it.
    body: Claim<SlotState<D>>,
    /// The capsule, if somebody else had the claim when it came back: it stays until the queue is
    /// drained, as not everybody who has one may sleep, which its end takes.
    orphan: Claim<Option<Operation<Capsule<D>>>>,
}

struct SlotState<D: Payload> {
    id: CommandId,
    state: RequestState,
    /// The capsule, while no work request has it.
    capsule: Option<Operation<Capsule<D>>>,
    /// The key that the target was given.
    rkey: Option<u32>,
    /// The response, once it is there, with what the target invalidated.
    answer: Option<(cqe::Completion, Option<Invalidation>)>,
    /// What the command takes.
    stats: CommandStats,
}

/// A capsule that is ready to be posted, the way of its data, and the identifier of its command.
type Loaded<D> = (Operation<Capsule<D>>, DataMode, CommandId);

impl<D: Payload> Slot<D> {
    pub(super) fn new(tag: u16, pd: &Arc<ProtectionDomain>, pages: u32) -> Result<Self> {
        let tag_number = Tag::new(tag.into()).ok_or(EINVAL)?;
        Ok(Self {
            body: Claim::new(SlotState {
                id: CommandId::new(tag_number, Generation::default()),
                state: RequestState::Idle,
                capsule: Some(Operation::new(Capsule::new(tag, pd, pages)?)?),
                rkey: None,
                answer: None,
                stats: CommandStats::default(),
            }),
            orphan: Claim::new(None),
        })
    }

    /// Sends `command` with its data, `length` bytes of it, and says by what its response is known.
    /// Any context.
    ///
    /// # Errors
    ///
    /// Gives the data back: `EBUSY` if the tag is in use, `ENOMEM`, or `ENOTCONN`
    /// if the queue is being torn down.
    pub(crate) fn submit(
        &self,
        queue: &QueuePair<Queue>,
        command: Command,
        data: Option<(D, Direction)>,
        length: u32,
    ) -> Result<CommandId, (Error, Option<D>)> {
        let (capsule, data_mode, id) = self.load(queue.context(), command, data, length)?;
        let posted = capsule::post(queue, &rcu::read_lock(), capsule, data_mode);
        match posted {
            Ok(()) => Ok(id),
            Err(unposted) => Err(self.unposted(queue, unposted)),
        }
    }

    /// Claims the tag for a command, and makes its capsule, which is to be posted next. Made part
    /// of its caller, who knows what the command is. Any context.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit).
    #[inline(always)]
    pub(super) fn load(
        &self,
        this: &Queue,
        command: Command,
        data: Option<(D, Direction)>,
        length: u32,
    ) -> Result<Loaded<D>, (Error, Option<D>)> {
        let Some(mut body) = self.body.try_claim() else {
            return Err((EBUSY, data.map(|(d, _)| d)));
        };
        let Some(mut capsule) = body.capsule.take() else {
            return Err((EBUSY, data.map(|(d, _)| d)));
        };
        let data_mode = match body.prepare(this, &mut capsule, command, data, length) {
            Ok(data_mode) => data_mode,
            Err(refused) => {
                body.capsule = Some(capsule);
                return Err(refused);
            }
        };
        let sent = &mut capsule.command;
        trace::queue_command(move || QueuedCommand {
            queue: this.origin,
            command: written(sent),
            bytes: length,
            source: D::SOURCE,
        });
        let id = body.id;
        // From here on completions may come.
        body.keep();
        Ok((capsule, data_mode, id))
    }

    /// A command was not posted: why, and its data.
    ///
    /// A device that is at its end says `EIO`. The connection is lost with it, and so says what
    /// this answers. So it is where a target has answered what it was not sent: then the tag stays
    /// as it is until the queue is drained.
    #[cold]
    pub(super) fn unposted(
        &self,
        queue: &QueuePair<Queue>,
        mut unposted: Unposted<Capsule<D>>,
    ) -> (Error, Option<D>) {
        let capsule = &mut unposted.operation;
        capsule.posted = InFlightWr::Nothing;
        let data = capsule.region.release();
        let (this, command, retries) = (queue.context(), &mut capsule.command, retries(&data));
        trace::complete_command(|| ended::<D>(this, command, retries, CommandEnd::NOT_POSTED));
        let Some(mut body) = self.body.try_resume() else {
            // The answer is being looked at right now.
            self.stranded(unposted.operation);
            this.post_failed("command", unposted.error);
            return (errno::ENOTCONN, data);
        };
        body.capsule = Some(unposted.operation);
        body.state = body.state.after(RequestEvent::PostFailed).0;
        if body.state != RequestState::Idle {
            this.post_failed("command", unposted.error);
            return (errno::ENOTCONN, data);
        }
        body.free();
        match unposted.error {
            EIO => {
                this.post_failed("command", EIO);
                (errno::ENOTCONN, data)
            }
            error => (error, data),
        }
    }

    /// The command was sent.
    #[inline(always)]
    pub(super) fn sent(&self, queue: &QueuePair<Queue>, capsule: Operation<Capsule<D>>) {
        self.returned(queue, capsule, RequestEvent::SendDone);
    }

    /// The invalidation is over.
    #[inline(never)]
    pub(super) fn invalidated(&self, queue: &QueuePair<Queue>, capsule: Operation<Capsule<D>>) {
        self.returned(queue, capsule, RequestEvent::LocalInvalidateDone);
    }

    /// A work request gave the capsule back; `event` says which.
    #[inline(always)]
    fn returned(
        &self,
        queue: &QueuePair<Queue>,
        capsule: Operation<Capsule<D>>,
        event: RequestEvent,
    ) {
        // Who submitted the command keeps the claim until it is over.
        let body = self.body.try_resume();
        let Some(mut body) = body.filter(|body| body.capsule.is_none()) else {
            return self.in_use(queue, capsule);
        };
        body.capsule = Some(capsule);
        match body.take_note(event) {
            RequestAction::Wait => {}
            outcome => self.advance(queue, body, outcome),
        }
    }

    /// A work request failed; the command stays until the queue is drained.
    #[cold]
    #[inline(never)]
    pub(super) fn failed(
        &self,
        queue: &QueuePair<Queue>,
        capsule: Operation<Capsule<D>>,
        failure: Failure,
    ) {
        let what = capsule.posted.name();
        self.stranded(capsule);
        queue.context().request_failed(what, failure);
    }

    /// Puts the capsule of a command aside that stays until the queue is drained.
    pub(super) fn stranded(&self, capsule: Operation<Capsule<D>>) {
        let body = self.body.try_resume();
        if let Some(mut body) = body.filter(|body| body.capsule.is_none()) {
            body.capsule = Some(capsule);
        } else if let Some(mut orphan) = self.orphan.try_claim() {
            *orphan = Some(capsule);
        }
    }

    /// A capsule comes back to a slot that somebody else uses, which cannot be.
    #[cold]
    #[inline(never)]
    fn in_use(&self, queue: &QueuePair<Queue>, capsule: Operation<Capsule<D>>) {
        self.stranded(capsule);
        queue.context().post_failed("slot in use", EBUSY);
    }

    /// The response has arrived.
    #[inline(always)]
    pub(super) fn answered(
        &self,
        queue: &QueuePair<Queue>,
        completion: cqe::Completion,
        invalidation: Option<Invalidation>,
    ) {
        // Of a tag that is free, or which somebody prepares a command of, none is in flight.
        let body = self.body.try_resume();
        let Some(mut body) = body.filter(|body| body.id == completion.command_id()) else {
            return queue.context().unknown(completion.command_id());
        };
        let outcome = match &invalidation {
            None => body.take_note(RequestEvent::Response(RemoteInvalidation::None)),
            Some(i) if Some(i.rkey()) == body.rkey => {
                body.take_note(RequestEvent::Response(RemoteInvalidation::Own))
            }
            Some(_) => body.take_note(RequestEvent::Response(RemoteInvalidation::Foreign)),
        };
        match outcome {
            // Nearly always the response comes last.
            RequestAction::Complete => self.end(queue, body, completion, invalidation),
            outcome => {
                if body.answer.is_none() {
                    body.answer = Some((completion, invalidation));
                }
                self.advance(queue, body, outcome);
            }
        }
    }

    /// Does what follows from an event.
    #[inline(never)]
    fn advance(
        &self,
        queue: &QueuePair<Queue>,
        mut body: ClaimGuard<'_, SlotState<D>>,
        outcome: RequestAction,
    ) {
        match outcome {
            RequestAction::Wait => {}
            RequestAction::PostLocalInvalidate => self.invalidate(queue, body),
            RequestAction::Complete => {
                if let Some((completion, invalidation)) = body.answer.take() {
                    self.end(queue, body, completion, invalidation);
                }
            }
            RequestAction::ProtocolError(error) => {
                queue.context().report_error(ConnError::Protocol {
                    qid: queue.context().qid(),
                    command_id: body.id.get(),
                    error,
                })
            }
        }
    }

    /// The target left the key alone, so we end its access ourselves.
    fn invalidate(&self, queue: &QueuePair<Queue>, mut body: ClaimGuard<'_, SlotState<D>>) {
        let Some(mut capsule) = body.capsule.take() else {
            return;
        };
        drop(body);
        capsule.posted = InFlightWr::Invalidation;
        let posted = queue.post_send(capsule, |capsule, chain| chain.invalidate(&capsule.region));
        match posted {
            Ok(()) => queue.context().stats.invalidated(),
            Err(unposted) => {
                self.stranded(unposted.operation);
                queue.context().post_failed("invalidation", unposted.error);
            }
        }
    }

    /// The command is over in every respect.
    #[inline(always)]
    fn end(
        &self,
        queue: &QueuePair<Queue>,
        mut body: ClaimGuard<'_, SlotState<D>>,
        completion: cqe::Completion,
        invalidation: Option<Invalidation>,
    ) {
        let Some(capsule) = body.capsule.as_deref_mut() else {
            return;
        };
        let remotely_invalidated = invalidation.is_some();
        if let Some(invalidation) = invalidation {
            capsule.region.invalidated_by(invalidation);
        }
        let payload = capsule.region.release();
        let (status, result) = (completion.status(), completion.result);
        let (end, position) = (CommandEnd { status, result }, capsule.position);
        let (this, command, retries) = (queue.context(), &mut capsule.command, retries(&payload));
        trace::complete_command(move || ended::<D>(this, command, retries, end));
        this.stats.answered(AnsweredCommand {
            stats: &body.stats,
            position,
            status,
            remotely_invalidated,
        });
        // The tag may be used again from here on.
        body.free();
        D::deliver(this, completion, payload);
    }

    /// Takes the data back from `queue`, which is drained, and counts what its command took. What a
    /// device keeps all the same stays with it. Sleeps.
    pub(super) fn reclaim(&self, queue: &Queue) -> Option<D> {
        let mut body = self.any()?;
        let was_in_flight = body.state != RequestState::Idle;
        body.state = body.state.after(RequestEvent::Drained).0;
        body.answer = None;
        let orphan = self.orphan.try_claim().and_then(|mut orphan| orphan.take());
        let Some(capsule) = body.capsule.take().or(orphan) else {
            if was_in_flight {
                queue.kept_by_device(body.id);
            }
            return None;
        };
        let mut capsule = capsule.into_inner();
        let was_in_flight = was_in_flight && capsule.posted != InFlightWr::Nothing;
        if was_in_flight {
            queue.stats.lost(&body.stats, capsule.position);
        }
        // The region goes, too: whatever the target knows of it is void.
        let data = capsule.region.dereg();
        if was_in_flight {
            let (command, retries) = (&mut capsule.command, retries(&data));
            trace::complete_command(|| ended::<D>(queue, command, retries, CommandEnd::QUEUE_GONE));
        }
        data
    }

    /// The slot's contents, whether a command is in flight or not.
    #[inline]
    fn any(&self) -> Option<ClaimGuard<'_, SlotState<D>>> {
        self.body.try_resume().or_else(|| self.body.try_claim())
    }
}

/// What is traced of a command that is over, with this status and result.
fn ended<D: Payload>(
    queue: &Queue,
    command: &mut DmaBuffer,
    retries: u64,
    end: CommandEnd,
) -> EndedCommand {
    EndedCommand {
        queue: queue.origin,
        command: written(command),
        source: D::SOURCE,
        end,
        retries: u8::try_from(retries).unwrap_or(u8::MAX),
    }
}

/// How often the command of this data was sent before.
#[inline]
fn retries<D: Payload>(payload: &Option<D>) -> u64 {
    payload.as_ref().map_or(0, D::retries)
}

/// The command in a capsule that no work request has, for a trace.
fn written(command: &mut DmaBuffer) -> Command {
    let sent = command.read().first_chunk();
    let sent = sent.map_or(Command::flush(0), |bytes| Command::from_bytes(*bytes));
    command.give_back();
    sent
}

impl<D: Payload> SlotState<D> {
    /// An event has happened to the command: what is to be done.
    #[inline(always)]
    fn take_note(&mut self, event: RequestEvent) -> RequestAction {
        let (state, outcome) = self.state.after(event);
        self.state = state;
        outcome
    }

    /// Writes the command to its capsule, with its identifier and where its data is.
    // What is known of it is written at once: that is less to be kept while the data is mapped.
    #[inline(always)]
    fn prepare(
        &mut self,
        queue: &Queue,
        capsule: &mut Capsule<D>,
        mut command: Command,
        data: Option<(D, Direction)>,
        length: u32,
    ) -> Result<DataMode, (Error, Option<D>)> {
        self.id = CommandId::new(self.id.tag(), self.id.generation().next());
        self.stats = CommandStats::new(&queue.stats, command.io_op(queue.qid), length);
        command.set_command_id(self.id);
        capsule.posted = InFlightWr::Command;
        capsule.position = PostPosition::First;
        let Capsule {
            command: buffer,
            region,
            ..
        } = capsule;
        let mut entry = buffer.write();
        match entry.first_chunk_mut() {
            Some(entry) => command.write_to(entry),
            None => return Err((EINVAL, data.map(|(data, _)| data))),
        }
        let goes_to_target = matches!(data, Some((_, Direction::ToDevice)));
        if let Some((data, direction)) = data {
            let attached = region.attach(data, direction);
            attached.map_err(|(error, data)| (error, Some(data)))?;
        }
        let data_mode = queue.data_mode(goes_to_target, region.segments(), length);
        match self.expose(region, data_mode, length) {
            Ok(sgl) => {
                if let (Some(sgl), Some(entry)) = (sgl, entry.first_chunk_mut()) {
                    Command::set_sgl_of(entry, sgl);
                }
            }
            Err(error) => return Err((error, region.release())),
        }
        self.stats.data_mode = data_mode;
        Ok(data_mode)
    }

    /// Lets the target have the data, and says where it is.
    #[inline(always)]
    fn expose(
        &mut self,
        region: &mut Region<D>,
        data_mode: DataMode,
        length: u32,
    ) -> Result<Option<Sgl>> {
        let (rkey, sgl) = match data_mode {
            DataMode::Nothing => (None, None),
            DataMode::InCapsule => (None, Some(Sgl::in_capsule(0, length))),
            DataMode::ByKey => {
                let key = region.bind()?;
                let sgl = Sgl::keyed(key.address, key.length, key.rkey, Invalidate::ByTarget);
                (Some(key.rkey), Some(sgl.map_err(|_| EINVAL)?))
            }
        };
        self.rkey = rkey;
        self.state = match self.state.after(RequestEvent::Post {
            region: data_mode == DataMode::ByKey,
        }) {
            (state, RequestAction::Wait) => state,
            _ => return Err(EBUSY),
        };
        Ok(sgl)
    }
}

impl Queue {
    /// The way that the data of a command takes: in the capsule if it is sent and
    /// fits there; the admin queue has no room for that.
    #[inline]
    fn data_mode(&self, goes_to_target: bool, segments: u32, length: u32) -> DataMode {
        match segments {
            0 => DataMode::Nothing,
            _ if goes_to_target && self.inline.allows(length, segments) => DataMode::InCapsule,
            _ => DataMode::ByKey,
        }
    }

    pub(super) fn post_failed(&self, what: &'static str, error: Error) {
        self.report_error(ConnError::Post {
            qid: self.qid,
            what,
            error,
        });
    }
}
