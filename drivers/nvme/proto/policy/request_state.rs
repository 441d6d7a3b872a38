// SPDX-License-Identifier: GPL-2.0

//! Where a request is between its posting and its end.
//!
//! A request may end only when three things are over: the send of its command,
//! as the memory of the command and of data in its capsule belongs to the
//! device until then; its response, which can overtake the send's completion;
//! and the peer's access to its memory region, which either the peer ends
//! along with the response or a local invalidation does. Each happens at most
//! once. Whatever else a peer says of a request is a protocol error, and then
//! the request ends only once the queue is drained, as nobody knows before
//! what the peer still accesses.
//!
//! Completions that failed are no events here: they end the queue, and all its
//! requests with it, by [`RequestEvent::Drained`].

use core::fmt;

/// State of a request; a driver keeps one per tag, in an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RequestState {
    /// Not posted: the tag is free or the request is being prepared.
    Idle = 0,
    /// Posted without a region; neither sent nor answered.
    Posted = 1,
    /// Posted with a region that the peer may access; neither sent nor
    /// answered.
    PostedRegion = 2,
    /// Sent without a region; not answered.
    Sent = 3,
    /// Sent with a region; not answered.
    SentRegion = 4,
    /// Answered, and no region is valid; not sent as far as is known.
    Answered = 5,
    /// Answered, and the region is still valid; not sent as far as is known.
    /// The invalidation waits for that: until then the device has the memory
    /// that it is posted from.
    AnsweredRegion = 6,
    /// Sent and answered; the region is being invalidated.
    Invalidating = 7,
    /// A protocol error happened; waits for the queue to be drained.
    Broken = 8,
}

/// What happens to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestEvent {
    /// It is about to be posted, and is Idle; from then on all others may come.
    Post {
        /// Whether with a memory region that the peer may access.
        region: bool,
    },
    /// It could not be posted at all: no work request of it is queued.
    PostFailed,
    /// Its command was sent.
    SendDone,
    /// Its response was received.
    Response(RemoteInvalidation),
    /// The local invalidation of its region was completed.
    LocalInvalidateDone,
    /// The queue is drained: nothing of the request is left with the device,
    /// and the peer has no access any more.
    Drained,
}

/// What a response says of a region that the peer made invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteInvalidation {
    /// Nothing.
    None,
    /// It was the request's own.
    Own,
    /// It was not the request's own.
    Foreign,
}

/// What to do about an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestAction {
    /// Nothing: other events have to come first.
    Wait,
    /// Post a local invalidation of the region.
    PostLocalInvalidate,
    /// End the request: it is Idle.
    Complete,
    /// Tear down the queue. The request does not end now.
    ProtocolError(ProtocolError),
}

/// What cannot happen in a request's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    /// An event of a request that is not posted.
    NotPosted,
    /// A second posting.
    AlreadyPosted,
    /// A second completion of the send, or a failed post after it.
    AlreadySent,
    /// A second response.
    AlreadyAnswered,
    /// A completed local invalidation that was not posted.
    NotInvalidating,
    /// The peer invalidated a region, and the request has none.
    UnexpectedInvalidation,
    /// The peer invalidated another region than the request's.
    WrongInvalidation,
}

impl RequestState {
    /// All states, in order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Posted,
        Self::PostedRegion,
        Self::Sent,
        Self::SentRegion,
        Self::Answered,
        Self::AnsweredRegion,
        Self::Invalidating,
        Self::Broken,
    ];

    /// Takes a state's number back from where it was kept.
    #[inline]
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Idle),
            1 => Some(Self::Posted),
            2 => Some(Self::PostedRegion),
            3 => Some(Self::Sent),
            4 => Some(Self::SentRegion),
            5 => Some(Self::Answered),
            6 => Some(Self::AnsweredRegion),
            7 => Some(Self::Invalidating),
            8 => Some(Self::Broken),
            _ => None,
        }
    }

    /// The state's number.
    #[inline]
    #[must_use]
    pub const fn to_u8(self) -> u8 {
        self as u8
    }

    /// The state after `event`, and what to do about it.
    // Of an event that is known where it is called, a few instructions are left.
    #[inline(always)]
    #[must_use]
    pub const fn after(self, event: RequestEvent) -> (Self, RequestAction) {
        match (self, event) {
            // Nearly always: the send is over first, and the target ends its access.
            (Self::PostedRegion, RequestEvent::SendDone) => (Self::SentRegion, RequestAction::Wait),
            (Self::SentRegion, RequestEvent::Response(RemoteInvalidation::Own)) => {
                (Self::Idle, RequestAction::Complete)
            }
            (_, RequestEvent::Drained) => self.drained(),
            (_, RequestEvent::Post { region }) => self.post(region),
            // What is broken stays so, whatever still arrives of it.
            (Self::Broken, _) => (Self::Broken, RequestAction::Wait),
            (_, RequestEvent::PostFailed) => self.post_failed(),
            (_, RequestEvent::SendDone) => self.send_done(),
            (_, RequestEvent::Response(invalidation)) => self.response(invalidation),
            (_, RequestEvent::LocalInvalidateDone) => self.local_invalidate_done(),
        }
    }

    #[inline]
    const fn post(self, region: bool) -> (Self, RequestAction) {
        match (self, region) {
            (Self::Idle, false) => (Self::Posted, RequestAction::Wait),
            (Self::Idle, true) => (Self::PostedRegion, RequestAction::Wait),
            _ => self.broken(ProtocolError::AlreadyPosted),
        }
    }

    #[inline]
    const fn post_failed(self) -> (Self, RequestAction) {
        match self {
            Self::Posted | Self::PostedRegion => (Self::Idle, RequestAction::Wait),
            _ => self.broken(ProtocolError::AlreadySent),
        }
    }

    #[inline]
    const fn send_done(self) -> (Self, RequestAction) {
        match self {
            Self::Posted => (Self::Sent, RequestAction::Wait),
            Self::PostedRegion => (Self::SentRegion, RequestAction::Wait),
            Self::Answered => (Self::Idle, RequestAction::Complete),
            Self::AnsweredRegion => (Self::Invalidating, RequestAction::PostLocalInvalidate),
            _ => self.broken(ProtocolError::AlreadySent),
        }
    }

    #[inline]
    const fn response(self, invalidation: RemoteInvalidation) -> (Self, RequestAction) {
        match self {
            Self::Posted | Self::Sent => match invalidation {
                RemoteInvalidation::None => self.answered(),
                RemoteInvalidation::Own | RemoteInvalidation::Foreign => {
                    self.broken(ProtocolError::UnexpectedInvalidation)
                }
            },
            Self::PostedRegion | Self::SentRegion => match invalidation {
                RemoteInvalidation::None => self.answered_region(),
                RemoteInvalidation::Own => self.answered(),
                RemoteInvalidation::Foreign => self.broken(ProtocolError::WrongInvalidation),
            },
            _ => self.broken(ProtocolError::AlreadyAnswered),
        }
    }

    #[inline]
    const fn answered(self) -> (Self, RequestAction) {
        match self {
            Self::Sent | Self::SentRegion => (Self::Idle, RequestAction::Complete),
            _ => (Self::Answered, RequestAction::Wait),
        }
    }

    #[inline]
    const fn answered_region(self) -> (Self, RequestAction) {
        match self {
            Self::SentRegion => (Self::Invalidating, RequestAction::PostLocalInvalidate),
            _ => (Self::AnsweredRegion, RequestAction::Wait),
        }
    }

    #[inline]
    const fn local_invalidate_done(self) -> (Self, RequestAction) {
        match self {
            Self::Invalidating => (Self::Idle, RequestAction::Complete),
            _ => self.broken(ProtocolError::NotInvalidating),
        }
    }

    /// Ends whatever is posted; a request that is not has ended before.
    #[inline]
    const fn drained(self) -> (Self, RequestAction) {
        match self {
            Self::Idle => (Self::Idle, RequestAction::Wait),
            _ => (Self::Idle, RequestAction::Complete),
        }
    }

    /// An idle tag stays idle: there is nothing that could end.
    #[inline]
    const fn broken(self, error: ProtocolError) -> (Self, RequestAction) {
        match self {
            Self::Idle => (
                Self::Idle,
                RequestAction::ProtocolError(ProtocolError::NotPosted),
            ),
            _ => (Self::Broken, RequestAction::ProtocolError(error)),
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPosted => "response or completion of a request that is not posted",
            Self::AlreadyPosted => "request posted twice",
            Self::AlreadySent => "request sent twice",
            Self::AlreadyAnswered => "request answered twice",
            Self::NotInvalidating => "local invalidation that was not asked for",
            Self::UnexpectedInvalidation => "invalidation of a region for a request without one",
            Self::WrongInvalidation => "invalidation of the region of another request",
        })
    }
}

#[cfg(test)]
mod tests;
