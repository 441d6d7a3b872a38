// SPDX-License-Identifier: GPL-2.0

//! State of a request, from posting to completion.
//!
//! A request completes after three events. Each event happens at most once:
//!
//! - The send of its command completes. Until then the device owns the memory of the command and of
//!   in-capsule data.
//! - Its response arrives, possibly before the completion of the send.
//! - The target loses access to the request's memory region. Either it invalidates the key with the
//!   response, or a local invalidation does.
//!
//! All else that a target sends for a request is a protocol error. The request then completes only
//! after the queue is drained, because the target may access its memory until then.
//!
//! Work requests that fail are not events here. They end the queue, and [`RequestEvent::Drained`]
//! then ends all its requests.

use core::fmt;

/// State of a request. A driver keeps one per tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestState {
    /// Not posted: the tag is free, or the request is being prepared or completed.
    Idle,
    /// Posted without a region; neither sent nor answered.
    Posted,
    /// Posted with a region that the target may access; neither sent nor answered.
    PostedRegion,
    /// Sent without a region; not answered.
    Sent,
    /// Sent with a region; not answered.
    SentRegion,
    /// Answered, and no region is valid; the send has not completed.
    Answered,
    /// Answered, and the region is still valid; the send has not completed. The local invalidation
    /// waits for that, because the device owns the memory that it is posted from.
    AnsweredRegion,
    /// Sent and answered; the region is being invalidated.
    Invalidating,
    /// A protocol error occurred; waits for the drain of the queue.
    Broken,
}

/// An event of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestEvent {
    /// The request, which is idle, is about to be posted. All other events may follow at once.
    Post {
        /// Whether the request has a memory region that the target may access.
        region: bool,
    },
    /// The request could not be posted: none of its work requests is queued.
    PostFailed,
    /// The send of the command completed.
    SendDone,
    /// The response arrived.
    Response(RemoteInvalidation),
    /// The local invalidation of the region completed.
    LocalInvalidateDone,
    /// The request was to complete, but the region keeps its data: nothing proves that the key is
    /// invalid.
    NotReleased,
    /// The queue is drained: the device owns nothing of the request, and the target has no access.
    Drained,
}

/// The key that the target invalidated with a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteInvalidation {
    /// None.
    None,
    /// The key of the request's region.
    Own,
    /// Another key.
    Foreign,
}

/// Action of a driver after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestAction {
    /// Wait for other events.
    Wait,
    /// Post a local invalidation of the region.
    PostLocalInvalidate,
    /// Complete the request, which is idle.
    Complete,
    /// Tear down the queue. The request does not complete now.
    ProtocolError(ProtocolError),
}

/// An event that is invalid in the state of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    /// An event of a request that is not posted.
    NotPosted,
    /// The request is posted a second time.
    AlreadyPosted,
    /// The send completed a second time, or a post failed after it.
    AlreadySent,
    /// A second response arrived.
    AlreadyAnswered,
    /// A local invalidation completed that was not posted.
    NotInvalidating,
    /// The target invalidated a key, but the request has no region.
    UnexpectedInvalidation,
    /// The target invalidated another key than that of the request's region.
    WrongInvalidation,
    /// Nothing proves that the key of the request's region is invalid.
    UnprovenInvalidation,
}

impl RequestState {
    /// Returns the state after the send completed, in the common case: before the response arrived.
    /// `None` in all other cases, which [`after`](Self::after) handles.
    #[inline(always)]
    #[must_use]
    pub const fn sent_first(self) -> Option<Self> {
        match self {
            Self::Posted => Some(Self::Sent),
            Self::PostedRegion => Some(Self::SentRegion),
            _ => None,
        }
    }

    /// Returns the state after a response that leaves no region valid, if the send has not completed.
    /// `None` in all other cases, which [`after`](Self::after) handles.
    ///
    /// This is frequent where many commands are posted at a time.
    #[inline(always)]
    #[must_use]
    pub const fn answered_first(self, invalidation: RemoteInvalidation) -> Option<Self> {
        match (self, invalidation) {
            (Self::Posted, RemoteInvalidation::None) => Some(Self::Answered),
            (Self::PostedRegion, RemoteInvalidation::Own) => Some(Self::Answered),
            _ => None,
        }
    }

    /// Returns the state after a response that completes the request. This is the common case: the
    /// send has completed, and the target invalidated the key. `None` in all other cases, which
    /// [`after`](Self::after) handles.
    #[inline(always)]
    #[must_use]
    pub const fn completed_by(self, invalidation: RemoteInvalidation) -> Option<Self> {
        match (self, invalidation) {
            (Self::Sent, RemoteInvalidation::None) => Some(Self::Idle),
            (Self::SentRegion, RemoteInvalidation::Own) => Some(Self::Idle),
            _ => None,
        }
    }

    /// Returns the state after `event`, and what to do.
    // Inlined: callers pass a constant event, which leaves a few instructions.
    #[inline(always)]
    #[must_use]
    pub const fn after(self, event: RequestEvent) -> (Self, RequestAction) {
        match (self, event) {
            (_, RequestEvent::Drained) => self.drained(),
            (_, RequestEvent::Post { region }) => self.post(region),
            // A broken request stays broken until the drain.
            (Self::Broken, _) => (Self::Broken, RequestAction::Wait),
            (_, RequestEvent::PostFailed) => self.post_failed(),
            (_, RequestEvent::SendDone) => self.send_done(),
            (_, RequestEvent::Response(invalidation)) => self.response(invalidation),
            (_, RequestEvent::LocalInvalidateDone) => self.local_invalidate_done(),
            (_, RequestEvent::NotReleased) => Self::not_released(),
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
        if let Some(sent) = self.sent_first() {
            return (sent, RequestAction::Wait);
        }
        match self {
            Self::Answered => (Self::Idle, RequestAction::Complete),
            Self::AnsweredRegion => (Self::Invalidating, RequestAction::PostLocalInvalidate),
            _ => self.broken(ProtocolError::AlreadySent),
        }
    }

    #[inline]
    const fn response(self, invalidation: RemoteInvalidation) -> (Self, RequestAction) {
        if let Some(idle) = self.completed_by(invalidation) {
            return (idle, RequestAction::Complete);
        }
        if let Some(answered) = self.answered_first(invalidation) {
            return (answered, RequestAction::Wait);
        }
        // The two functions above handle each response after which no region is valid.
        match (self, invalidation) {
            (Self::Posted | Self::Sent, _) => self.broken(ProtocolError::UnexpectedInvalidation),
            (Self::PostedRegion | Self::SentRegion, RemoteInvalidation::Foreign) => {
                self.broken(ProtocolError::WrongInvalidation)
            }
            (Self::PostedRegion | Self::SentRegion, _) => self.answered_region(),
            _ => self.broken(ProtocolError::AlreadyAnswered),
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

    /// Makes a request broken that was to complete, so that it waits for the drain. It is idle, unlike
    /// those of [`broken`](Self::broken).
    #[inline]
    const fn not_released() -> (Self, RequestAction) {
        let error = ProtocolError::UnprovenInvalidation;
        (Self::Broken, RequestAction::ProtocolError(error))
    }

    /// Completes a request that is posted. One that is idle has completed before.
    #[inline]
    const fn drained(self) -> (Self, RequestAction) {
        match self {
            Self::Idle => (Self::Idle, RequestAction::Wait),
            _ => (Self::Idle, RequestAction::Complete),
        }
    }

    /// Makes a request broken. An idle tag stays idle: it has no request that could complete.
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
            Self::NotInvalidating => "completion of a local invalidation that was not posted",
            Self::UnexpectedInvalidation => {
                "remote invalidation of a key for a request without a region"
            }
            Self::WrongInvalidation => "remote invalidation of the key of another request",
            Self::UnprovenInvalidation => "no proof that the key of the request is invalid",
        })
    }
}

#[cfg(test)]
mod tests;
