# SPDX-License-Identifier: GPL-2.0
"""Circles in a graph: a dictionary of nodes to the set of their successors."""

import collections


def shortest(graph, start, end):
    """A shortest path from a node to another, both named; None if there is none."""
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
    """Shortest circles until none is left, each with an edge that no other has.

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
