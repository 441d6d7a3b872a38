# SPDX-License-Identifier: GPL-2.0
"""Write cpio archives in the format that the kernel unpacks as an initramfs."""

import stat


class Archive:
    """A cpio archive (newc) in memory; entries are in the order in which they were added."""

    def __init__(self):
        self._data = bytearray()
        self._inode = 0
        self._directories = set()

    def _entry(self, name, mode, content):
        self._inode += 1
        encoded = name.encode() + b"\0"
        fields = [self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
        self._data += b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
        self._pad()
        self._data += content
        self._pad()

    def _pad(self):
        self._data += bytes(-len(self._data) % 4)

    def directory(self, name):
        """Add a directory."""
        if name not in self._directories:
            self._directories.add(name)
            self._entry(name, stat.S_IFDIR | 0o755, b"")

    def parents(self, name):
        """Add the directories above `name`."""
        parts = name.split("/")
        for count in range(1, len(parts)):
            self.directory("/".join(parts[:count]))

    def file(self, name, content, mode=0o644):
        """Add a file."""
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name, target):
        """Add a symbolic link."""
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def finish(self):
        """Return the whole archive."""
        self._entry("TRAILER!!!", 0, b"")
        return bytes(self._data)
