// SPDX-License-Identifier: GPL-2.0

//! Stand-ins for queue pairs and work requests.

pub(crate) mod qp {
    use crate::prelude::Error;
    use std::{any::Any, sync::Mutex};

    /// A queue pair, which records what is posted, or fails to post.
    pub(crate) struct QueuePair<E> {
        pub(crate) context: E,
        pub(crate) error: Option<Error>,
        // Not of `loom`: that a device records posted work requests orders nothing here.
        pub(crate) posted: Mutex<Vec<Box<dyn Any + Send>>>,
    }

    impl<E> QueuePair<E> {
        pub(crate) fn context(&self) -> &E {
            &self.context
        }
    }
}

pub(crate) mod wr {
    use super::qp::QueuePair;
    use crate::{prelude::Error, sync::RcuSection};
    use std::{
        marker::PhantomData,
        ops::{Deref, DerefMut},
    };

    pub(crate) struct Operation<T>(pub(crate) T);

    impl<T> Deref for Operation<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for Operation<T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }

    pub(crate) struct Unposted<T> {
        pub(crate) error: Error,
        pub(crate) operation: Operation<T>,
    }

    #[expect(dead_code, reason = "the stand-in allocates nothing")]
    pub(crate) struct BatchCapacity {
        pub(crate) requests: usize,
        pub(crate) pieces: usize,
    }

    /// Work requests, which the stand-in does not make.
    pub(crate) struct Chain<'a, 'q, E> {
        _operation: PhantomData<&'a ()>,
        _queue: PhantomData<&'q fn(E)>,
    }

    impl<E> Chain<'_, '_, E> {
        fn new() -> Self {
            Self {
                _operation: PhantomData,
                _queue: PhantomData,
            }
        }
    }

    pub(crate) struct Batch<E, T> {
        operations: Vec<Operation<T>>,
        capacity: usize,
        _queue: PhantomData<fn(E)>,
    }

    impl<E, T: Send + 'static> Batch<E, T> {
        pub(crate) fn new(capacity: BatchCapacity) -> Result<Self, Error> {
            Ok(Self {
                operations: Vec::new(),
                capacity: capacity.requests,
                _queue: PhantomData,
            })
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.operations.is_empty()
        }

        pub(crate) fn is_full(&self) -> bool {
            self.operations.len() == self.capacity
        }

        pub(crate) fn push(
            &mut self,
            _: &QueuePair<E>,
            mut operation: Operation<T>,
            build: impl for<'a> FnOnce(&'a mut T, &mut Chain<'a, '_, E>) -> Result<(), Error>,
        ) -> Result<(), Unposted<T>> {
            assert!(!self.is_full());
            if let Err(error) = build(&mut operation, &mut Chain::new()) {
                return Err(Unposted { error, operation });
            }
            self.operations.push(operation);
            Ok(())
        }

        pub(crate) fn post_within(
            &mut self,
            _: &RcuSection,
            queue: &QueuePair<E>,
        ) -> Result<(), Error> {
            match queue.error {
                Some(error) if !self.is_empty() => Err(error),
                _ => {
                    let mut posted = queue.posted.lock().unwrap();
                    for operation in self.operations.drain(..) {
                        posted.push(Box::new(operation.0));
                    }
                    Ok(())
                }
            }
        }

        pub(crate) fn take_back(&mut self) -> Option<Operation<T>> {
            (!self.is_empty()).then(|| self.operations.remove(0))
        }
    }
}
