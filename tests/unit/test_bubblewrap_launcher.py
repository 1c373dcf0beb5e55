"""The launcher survives what happens in one and the same moment."""

from __future__ import annotations

import os
import selectors
import socket

from metier.harness.sandbox.bubblewrap.launcher import Launcher


def test_what_was_ended_in_this_turn_is_not_served_in_it() -> None:
    """A sandbox that ends closes the pipe of its last words, which may be ready too."""
    ours, theirs = socket.socketpair()
    launcher = Launcher(theirs)
    pipes = [os.pipe(), os.pipe()]
    served = []

    def serve(mine: int, other: int) -> None:
        served.append(mine)
        launcher.selector.unregister(other)
        os.close(other)

    for (mine, writer), (other, _) in (pipes, reversed(pipes)):
        os.write(writer, b"x")
        launcher.selector.register(mine, selectors.EVENT_READ, lambda mine=mine, other=other: serve(mine, other))
    launcher.turn()
    assert len(served) == 1
    launcher.selector.close()
    os.close(served[0])
    for _, writer in pipes:
        os.close(writer)
    ours.close()
    theirs.close()
