# SPDX-License-Identifier: GPL-2.0
"""Tests of the reader of calls whose place the called function gets."""

import pathlib
import tempfile
import unittest

from checklib import tracking

from . import write

SOURCE = """\
impl<T: Job> Queue<T> {
    #[track_caller]
    pub fn new(name: &CStr) -> Self {}

    #[track_caller]
    #[inline]
    pub(crate) fn observe<O>(&self, observer: O) {}

    pub fn other(&self) {}
}

impl Drop for Thread {
    #[track_caller]
    fn spawn<F>(
        life: F,
    ) {}
}
"""


class Functions(unittest.TestCase):
    """The tracked functions of a tree."""

    def test_names(self):
        with tempfile.TemporaryDirectory() as scratch:
            write(pathlib.Path(scratch), {"sync/queue.rs": SOURCE})
            self.assertEqual(tracking.functions(pathlib.Path(scratch)),
                             {"Queue::new", "observe", "Thread::spawn"})


class Called(unittest.TestCase):
    """The function that a line calls at a column."""

    def test_called(self):
        for line, at, name in (
                ("    let queue = Queue::new(NAME, 1 + n)?;", "Queue", "Queue::new"),
                ("    let queue = sync::Queue::<Job<u8>>::new(NAME)?;", "sync", "Queue::new"),
                ("    id.observe(observer)?;", "observe", "observe"),
                ("    let queue = Queue::new(NAME, 1 + n)?;", "1 +", None),
                ("    numbers[queue(3)]", "numbers", None)):
            with self.subTest(line):
                self.assertEqual(tracking.called(line, line.index(at) + 1), name)
