# SPDX-License-Identifier: GPL-2.0
"""Find circles in a graph, which is a dictionary: node -> set of its successors."""

import collections


def shortest(graph, start, end):
    """Return a shortest path from a node to another, including both; None if there is no path."""
    before, waiting = {start: None}, collections.deque([start])
    while waiting:
        node = waiting.popleft()
        for successor in sorted(graph.get(node, ())):
            if successor == end:
                path = [end, node]
                while before[path[-1]] is not None:
                    path.append(before[path[-1]])
                return path[::-1]
            if successor not in before:
                before[successor] = node
                waiting.append(successor)
    return None


def circles(graph):
    """Yield the shortest circle and remove one of its edges, until no circle is left.

    A circle is a path that ends where it begins.
    """
    left = {node: set(successors) for node, successors in graph.items()}
    while True:
        paths = [path for node in sorted(left) if (path := shortest(left, node, node))]
        if not paths:
            return
        path = min(paths, key=len)
        yield path
        left[path[-2]].discard(path[-1])
