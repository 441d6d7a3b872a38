// SPDX-License-Identifier: GPL-2.0

//! Slot of one tag, and how completions change the state of its command.

use super::{
    capsule::{
        sent_command,
        Capsule,
        Capsules,
        CommandKind,
        CommandMessage,
        InFlightWr,
        UlpOf, //
    },
    queue_core::{
        protocol_error,
        unknown_command,
        QueueContext,
        QueueCore, //
    },
    slot_state::{
        CommandStats,
        SlotResponse,
        SlotState,
        Unsent, //
    },
};
use crate::{
    stats::{
        AnsweredCommand,
        Counters,
        DataMode, //
    },
    trace::{
        CommandEnd,
        EndedCommand,
        QueuedCommand, //
    },
    ulp::{
        Entry,
        Ulp, //
    },
};
use kernel::{prelude::*, sync::Arc};
use nvme_proto::{
    format::{
        cid::{
            CommandId,
            Generation,
            Tag, //
        },
        cqe,
    },
    policy::request_state::{
        RemoteInvalidation,
        RequestAction,
        RequestEvent,
        RequestState, //
    },
};
use rrdma::{
    errno,
    rdma::{
        cq::{
            Completion,
            Invalidation,
            WcError, //
        },
        pd::ProtectionDomain,
        qp::QueuePair,
        wr::{
            Chain,
            Complete,
            Operation,
            Unposted, //
        },
    },
    sync::{
        rcu_read,
        Claim,
        ClaimGuard, //
        RcuSection,
    },
};

/// A kind of commands, with a queue that has a slot for each of its tags.
pub(super) trait SlotLookup: CommandKind {
    /// Returns the slot of a tag; `None` if the tag belongs to another kind.
    fn slot(queue: &Self::Queue, tag: u16) -> Option<&Slot<Self>>;

    /// Ends a command that was not sent, after its submission has returned. Does nothing if the teardown owns
    /// its payload. Any context.
    fn finish(queue: &Self::Queue, unsent: Unsent<Self::Payload>);

    /// Completes a command. The target no longer has access to `payload`. Softirq context.
    fn complete(queue: &Self::Queue, completion: cqe::Completion, payload: Self::Payload);
}

/// Slot of one tag. It owns the tag's capsule while no work request does.
pub(super) struct Slot<K: CommandKind> {
    /// Claimed by the submitter, and kept for the completions of the command. They resume the claim
    /// one at a time; the last one frees it.
    state: Claim<SlotState<K>>,
    /// The capsule, if it came back while another context had the claim. Freed after the drain,
    /// because freeing sleeps.
    orphan: Claim<Option<Operation<Capsule<K>>>>,
}

/// The device did not return the capsule of a command when the queue was drained. It keeps the payload, too,
/// until it returns the capsule.
pub(super) struct KeptByDevice;

/// A capsule that is ready to be posted.
pub(super) struct Loaded<K: CommandKind> {
    pub(super) capsule: Operation<Capsule<K>>,
    pub(super) data_mode: DataMode,
    pub(super) id: CommandId,
}

impl<K: SlotLookup> Slot<K> {
    /// Allocates a slot with a region of `pages` pages. May sleep.
    pub(super) fn single(tag: u16, pd: &Arc<ProtectionDomain>, pages: u32) -> Result<Self> {
        Self::new(tag, &mut Capsules::new(pd, 1, pages)?)
    }

    /// Allocates a slot with a capsule of `capsules`. May sleep.
    pub(super) fn new(tag: u16, capsules: &mut Capsules<K>) -> Result<Self> {
        let tag_number = Tag::new(tag.into()).ok_or(EINVAL)?;
        Ok(Self {
            state: Claim::new(SlotState {
                id: CommandId::new(tag_number, Generation::default()),
                state: RequestState::Idle,
                capsule: Some(capsules.push(tag)?),
                rkey: 0,
                response: None,
                stats: CommandStats::<K>::default(),
            }),
            orphan: Claim::new(None),
        })
    }

    /// Sends a command, and returns the identifier that its response will have. Any context.
    ///
    /// # Errors
    ///
    /// Returns the payload with `EBUSY` if the tag is in use, `ENOMEM`, or `ENOTCONN` if the queue
    /// is ending.
    pub(super) fn submit(
        &self,
        queue: &QueuePair<K::Queue>,
        command: K::Command,
        payload: K::Payload,
    ) -> Result<CommandId, Unsent<K::Payload>> {
        let core = queue.context().core();
        let Loaded {
            capsule,
            data_mode,
            id,
        } = self.load(core, command, payload)?;
        match rcu_read(|section| Self::post(queue, section, capsule, data_mode)) {
            Ok(()) => Ok(id),
            Err(unposted) => Err(self.undo(queue, unposted)),
        }
    }

    /// Claims the tag for a command, and prepares its capsule, which the caller posts next. Any
    /// context.
    ///
    /// Inlined into the caller, where the kind of command is known.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit).
    #[inline(always)]
    pub(super) fn load(
        &self,
        core: &QueueCore<UlpOf<K>>,
        command: K::Command,
        payload: K::Payload,
    ) -> Result<Loaded<K>, Unsent<K::Payload>> {
        let bytes = command.length(&payload);
        let Some(mut state) = self.state.try_claim() else {
            return Err(in_use(payload));
        };
        let Some(mut capsule) = state.capsule.take() else {
            return Err(in_use(payload));
        };
        let data_mode = match state.prepare(core, &mut capsule, command, payload) {
            Ok(data_mode) => data_mode,
            Err(unsent) => {
                state.capsule = Some(capsule);
                return Err(unsent);
            }
        };
        let prepared = &mut capsule.command;
        UlpOf::<K>::trace_queued(move || QueuedCommand {
            queue: core.id,
            command: sent_command(prepared),
            bytes,
            source: K::SOURCE,
        });
        let id = state.id;
        // From now on, completions may resume the claim.
        state.keep();
        Ok(Loaded {
            capsule,
            data_mode,
            id,
        })
    }

    /// Posts a single capsule, within an RCU read-side critical section. Any context.
    ///
    /// # Errors
    ///
    /// As [`QueuePair::post_send`].
    #[inline(always)]
    pub(super) fn post(
        queue: &QueuePair<K::Queue>,
        section: &RcuSection,
        capsule: Operation<Capsule<K>>,
        data_mode: DataMode,
    ) -> Result<(), Unposted<Capsule<K>>> {
        use DataMode::*;

        match data_mode {
            Nothing => {
                Self::post_built(queue, section, capsule, |c, chain| c.chain(Nothing, chain))
            }
            InCapsule => Self::post_built(queue, section, capsule, |c, chain| {
                c.chain(InCapsule, chain)
            }),
            ByKey => Self::post_built(queue, section, capsule, |c, chain| c.chain(ByKey, chain)),
        }
    }

    /// Posts a capsule with the work requests that `build` creates. There is one such function for each
    /// data mode, so none saves registers for another.
    #[inline(never)]
    fn post_built(
        queue: &QueuePair<K::Queue>,
        section: &RcuSection,
        capsule: Operation<Capsule<K>>,
        build: impl for<'a> FnOnce(&'a mut Capsule<K>, &mut Chain<'a, '_, K::Queue>) -> Result,
    ) -> Result<(), Unposted<Capsule<K>>> {
        queue.post_send_within(section, capsule, build)
    }

    /// Undoes a command that was not posted, and returns its payload with the error.
    ///
    /// The error is that of the post if the post may be repeated: `EBUSY`, `ENOMEM` or `EAGAIN`. Otherwise
    /// it is `ENOTCONN`, and the connection is lost: no device has a reason to refuse a command for ever. It
    /// is also lost if the target answered the command although it was not sent. Then the tag stays in use
    /// until the drain.
    #[cold]
    pub(super) fn undo(
        &self,
        queue: &QueuePair<K::Queue>,
        mut unposted: Unposted<Capsule<K>>,
    ) -> Unsent<K::Payload> {
        let core = queue.context().core();
        let capsule = &mut *unposted.operation;
        capsule.in_flight = InFlightWr::Nothing;
        let payload = capsule.region.release();
        let retries = retries::<K>(&payload);
        let command = &mut capsule.command;
        UlpOf::<K>::trace_ended(|| ended::<K>(core, command, retries, CommandEnd::NOT_POSTED));
        let lost = |payload| Unsent {
            error: errno::ENOTCONN,
            payload,
        };
        let Some(mut state) = self.state.try_resume() else {
            // Another context handles a response to this command.
            self.set_aside(unposted.operation);
            core.post_failed("command", unposted.error);
            return lost(payload);
        };
        state.capsule = Some(unposted.operation);
        state.apply(RequestEvent::PostFailed);
        if state.state != RequestState::Idle {
            core.post_failed("command", unposted.error);
            return lost(payload);
        }
        state.free();
        match unposted.error {
            error @ (EBUSY | ENOMEM | EAGAIN) => Unsent { error, payload },
            error => {
                // The queue pair is closed after the connection was lost.
                if error != errno::ENOTCONN {
                    core.post_failed("command", error);
                }
                lost(payload)
            }
        }
    }

    /// Handles the completion of the command's send.
    #[inline(always)]
    fn sent(&self, queue: &QueuePair<K::Queue>, capsule: Operation<Capsule<K>>) {
        let Some(mut state) = self.resume_without_capsule() else {
            return self.returned_twice(queue, capsule);
        };
        state.capsule = Some(capsule);
        match state.state.sent_first() {
            Some(sent) => state.state = sent,
            None => self.handle(queue, state, RequestEvent::SendDone),
        }
    }

    /// Handles the completion of the key's invalidation.
    #[inline(never)]
    fn invalidated(&self, queue: &QueuePair<K::Queue>, capsule: Operation<Capsule<K>>) {
        let Some(mut state) = self.resume_without_capsule() else {
            return self.returned_twice(queue, capsule);
        };
        state.capsule = Some(capsule);
        self.handle(queue, state, RequestEvent::LocalInvalidateDone);
    }

    /// Resumes the submitter's claim, which is kept until the command ends. `None` if there is no
    /// command, or if it has its capsule.
    #[inline(always)]
    fn resume_without_capsule(&self) -> Option<ClaimGuard<'_, SlotState<K>>> {
        let state = self.state.try_resume();
        state.filter(|state| state.capsule.is_none())
    }

    /// Handles a failed work request. The command stays until the queue is drained.
    #[cold]
    #[inline(never)]
    fn failed(
        &self,
        queue: &QueuePair<K::Queue>,
        capsule: Operation<Capsule<K>>,
        failure: WcError,
    ) {
        let what = capsule.in_flight.name();
        self.set_aside(capsule);
        queue.context().core().request_failed(what, failure);
    }

    /// Keeps the capsule of a command that stays until the queue is drained: in the state, or in
    /// `orphan` if another context has the claim. There is one capsule for each slot, so one of the
    /// two is free.
    pub(super) fn set_aside(&self, capsule: Operation<Capsule<K>>) {
        if let Some(mut state) = self.resume_without_capsule() {
            state.capsule = Some(capsule);
        } else if let Some(mut orphan) = self.orphan.try_claim() {
            *orphan = Some(capsule);
        }
    }

    /// Handles a capsule that returned to a slot which has one, or has no command. A correct device
    /// never returns one.
    #[cold]
    #[inline(never)]
    fn returned_twice(&self, queue: &QueuePair<K::Queue>, capsule: Operation<Capsule<K>>) {
        self.set_aside(capsule);
        queue
            .context()
            .core()
            .post_failed("capsule returned twice", EBUSY);
    }

    /// Handles the response.
    #[inline(always)]
    pub(super) fn answered(
        &self,
        queue: &QueuePair<K::Queue>,
        completion: cqe::Completion,
        invalidation: Option<Invalidation>,
    ) {
        // If the claim cannot be resumed, no posted command has this tag: it is free, being
        // prepared, or just failed to post.
        let state = self.state.try_resume();
        let Some(mut state) = state.filter(|state| state.id == completion.command_id()) else {
            return unknown_command(queue, completion.command_id());
        };
        let invalidated = match &invalidation {
            None => RemoteInvalidation::None,
            // Without a region, the state takes no invalidation.
            Some(i) if i.rkey() == state.rkey => RemoteInvalidation::Own,
            Some(_) => RemoteInvalidation::Foreign,
        };
        match state.state.completed_by(invalidated) {
            Some(idle) => {
                state.state = idle;
                self.end(queue, state, completion, invalidation);
            }
            None => {
                let response = SlotResponse {
                    completion,
                    invalidation,
                };
                self.answered_early(queue, state, response, invalidated);
            }
        }
    }

    /// Handles a response that does not complete the command.
    #[cold]
    #[inline(never)]
    fn answered_early(
        &self,
        queue: &QueuePair<K::Queue>,
        mut state: ClaimGuard<'_, SlotState<K>>,
        response: SlotResponse,
        invalidated: RemoteInvalidation,
    ) {
        if state.response.is_none() {
            state.response = Some(response);
        }
        match state.state.answered_first(invalidated) {
            Some(answered) => state.state = answered,
            None => self.handle(queue, state, RequestEvent::Response(invalidated)),
        }
    }

    /// Applies an event that is not the common case, and carries out its action.
    #[cold]
    #[inline(never)]
    fn handle(
        &self,
        queue: &QueuePair<K::Queue>,
        mut state: ClaimGuard<'_, SlotState<K>>,
        event: RequestEvent,
    ) {
        match state.apply(event) {
            RequestAction::Wait => {}
            RequestAction::PostLocalInvalidate => self.invalidate(queue, state),
            RequestAction::Complete => {
                if let Some(response) = state.response.take() {
                    self.end(queue, state, response.completion, response.invalidation);
                }
            }
            RequestAction::ProtocolError(error) => protocol_error(queue, state.id, error),
        }
    }

    /// Invalidates a key that the target did not invalidate.
    fn invalidate(&self, queue: &QueuePair<K::Queue>, mut state: ClaimGuard<'_, SlotState<K>>) {
        let Some(mut capsule) = state.capsule.take() else {
            return;
        };
        drop(state);
        capsule.in_flight = InFlightWr::Invalidation;
        let posted = queue.post_send(capsule, |capsule, chain| chain.invalidate(&capsule.region));
        let core = queue.context().core();
        match posted {
            Ok(()) => core.stats.invalidated(),
            Err(unposted) => {
                self.set_aside(unposted.operation);
                core.post_failed("invalidation", unposted.error);
            }
        }
    }

    /// Completes a command that is sent and answered, and whose key is invalid. Reports a violation of
    /// the protocol if the region does not release the payload: then the command ends at the drain.
    #[inline(always)]
    fn end(
        &self,
        queue: &QueuePair<K::Queue>,
        mut state: ClaimGuard<'_, SlotState<K>>,
        completion: cqe::Completion,
        invalidation: Option<Invalidation>,
    ) {
        let Some(capsule) = state.capsule.as_deref_mut() else {
            return;
        };
        let remotely_invalidated = invalidation.is_some();
        let released = match invalidation {
            Some(invalidation) => capsule.region.release_invalidated(invalidation),
            None => capsule.region.release(),
        };
        // Each command has a payload, which its region holds since it was prepared.
        let Some(payload) = released else {
            return Self::not_released(queue, state);
        };
        let (status, result) = (completion.status(), completion.result);
        let (position, retries) = (capsule.position, K::retries(&payload));
        let (core, command) = (queue.context().core(), &mut capsule.command);
        UlpOf::<K>::trace_ended(move || {
            ended::<K>(core, command, retries, CommandEnd { status, result })
        });
        let response = AnsweredCommand {
            position,
            status,
            remotely_invalidated,
        };
        core.stats.answered(&state.stats, response);
        // From now on, the tag may be reused.
        state.free();
        K::complete(queue.context(), completion, payload);
    }

    /// Reports a command whose region still holds the payload after its last event. The slot stays in
    /// use, because the target may access the payload until the queue is drained.
    // Gets no more than the common path has in registers.
    #[cold]
    #[inline(never)]
    fn not_released(queue: &QueuePair<K::Queue>, mut state: ClaimGuard<'_, SlotState<K>>) {
        if let RequestAction::ProtocolError(error) = state.apply(RequestEvent::NotReleased) {
            protocol_error(queue, state.id, error);
        }
    }

    /// Returns whether a command has the slot: one that is being prepared, is in flight, or waits for the
    /// drain. Any context.
    pub(super) fn is_in_use(&self) -> bool {
        self.state.is_claimed()
    }

    /// Ends the command of the slot, if there is one, and returns its payload. Sleeps.
    ///
    /// The queue must be drained.
    ///
    /// # Errors
    ///
    /// [`KeptByDevice`], which is logged.
    pub(super) fn reclaim(
        &self,
        core: &QueueCore<UlpOf<K>>,
    ) -> Result<Option<K::Payload>, KeptByDevice> {
        let state = self.state.try_resume();
        let Some(mut state) = state.or_else(|| self.state.try_claim()) else {
            return Ok(None);
        };
        let was_in_flight = state.state != RequestState::Idle;
        state.apply(RequestEvent::Drained);
        state.response = None;
        let orphan = self.orphan.try_claim().and_then(|mut orphan| orphan.take());
        match state.capsule.take().or(orphan) {
            Some(capsule) => Ok(Self::end_drained(core, &state, capsule, was_in_flight)),
            None if was_in_flight => {
                UlpOf::<K>::log_kept_by_device(core.id, state.id.tag());
                Err(KeptByDevice)
            }
            None => Ok(None),
        }
    }

    /// Ends the command of the slot that the device kept at [`reclaim`](Self::reclaim), and has returned since.
    /// Returns its payload; `None` if there is no such command. Sleeps.
    ///
    /// The queue must be drained.
    pub(super) fn reclaim_kept(&self, core: &QueueCore<UlpOf<K>>) -> Option<K::Payload> {
        let state = self.state.try_resume();
        let mut state = state.or_else(|| self.state.try_claim())?;
        let orphan = self.orphan.try_claim().and_then(|mut orphan| orphan.take());
        let capsule = state.capsule.take().or(orphan)?;
        Self::end_drained(core, &state, capsule, true)
    }

    /// Ends a command of a drained queue, and returns its payload. Sleeps.
    fn end_drained(
        core: &QueueCore<UlpOf<K>>,
        state: &SlotState<K>,
        capsule: Operation<Capsule<K>>,
        was_in_flight: bool,
    ) -> Option<K::Payload> {
        let mut capsule = capsule.into_inner();
        let was_in_flight = was_in_flight && capsule.in_flight != InFlightWr::Nothing;
        if was_in_flight {
            core.stats.lost(&state.stats, capsule.position);
        }
        // Afterwards, all keys of the region that the target knows are invalid.
        let payload = capsule.region.dereg();
        if was_in_flight {
            let (command, retries) = (&mut capsule.command, retries::<K>(&payload));
            UlpOf::<K>::trace_ended(|| ended::<K>(core, command, retries, CommandEnd::QUEUE_GONE));
        }
        payload
    }
}

impl<K: SlotLookup> Complete<K::Queue> for Capsule<K> {
    #[inline]
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<K::Queue>,
        completion: &Completion<'_>,
    ) {
        let context = queue.context();
        context.core().stats.completed(completion);
        // Rare calls come last, so that the common path saves no registers for what follows them.
        let Some(slot) = K::slot(context, operation.tag) else {
            return misplaced(operation);
        };
        match (completion.result(), operation.in_flight) {
            // No capsule is posted as `Nothing`; a device may still complete one.
            (Ok(()), InFlightWr::Command | InFlightWr::Nothing) => slot.sent(queue, operation),
            (Ok(()), InFlightWr::Invalidation) => {
                operation.region.invalidated(completion);
                slot.invalidated(queue, operation);
            }
            (Err(failure), _) => slot.failed(queue, operation, failure),
        }
    }
}

/// Drops a capsule without a slot. There is none, because slots create all capsules.
#[cold]
#[inline(never)]
fn misplaced<K: CommandKind>(_: Operation<Capsule<K>>) {}

/// Returns the error of a tag in use.
fn in_use<P>(payload: P) -> Unsent<P> {
    Unsent {
        error: EBUSY,
        payload: Some(payload),
    }
}

/// Returns the number of commands that were already sent for the same request.
#[inline]
fn retries<K: CommandKind>(payload: &Option<K::Payload>) -> u64 {
    payload.as_ref().map_or(0, K::retries)
}

/// Returns the trace record of a command that ended.
fn ended<K: CommandKind>(
    core: &QueueCore<UlpOf<K>>,
    command: &mut CommandMessage,
    retries: u64,
    end: CommandEnd,
) -> EndedCommand {
    EndedCommand {
        queue: core.id,
        command: sent_command(command),
        source: K::SOURCE,
        retries: u8::try_from(retries).unwrap_or(u8::MAX),
        end,
    }
}
