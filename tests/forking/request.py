"""A request to the fork server, and the server's messages.

A request is a header of two 32-bit numbers, its length and the number of descriptors that the header carries, and then
fields that each end in NUL: folder; umask; process group; numbers of the descriptors; ignored signals; limits as
``soft:hard`` in the order of their numbers; number of arguments; arguments; environment. Numbers of one field are
separated by blanks. A message is a letter and a value, of 32 bits each: ``P`` and the id of the process, when it has
all that was requested; ``S`` and its status as from `waitpid`, when it has ended; or only ``X``, if the client is to
execute the interpreter itself.
"""

from __future__ import annotations

import array
import os
import resource
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

HEADER: Final = struct.Struct("=II")
MESSAGE: Final = struct.Struct("=ii")
STARTED: Final = ord("P")
ENDED: Final = ord("S")
EXECUTE: Final = ord("X")
_MOST_DESCRIPTORS: Final = 200
_N_LIMITS: Final = 16
"""Number of resources that Linux limits."""


@dataclass(frozen=True)
class Request:
    """What a process is to begin with.

    Attributes
    ----------
    folder : bytes
    umask : int
    group : int
        Its process group.
    descriptors : mapping
        From the numbers that the process is to have to the numbers that are open here.
    ignored : sequence of int
        Signals that it ignores, as after ``nohup``.
    limits : sequence of (int, int)
        Soft and hard limits, by number.
    arguments : sequence of bytes
        Those of the interpreter.
    environment : mapping
    """

    folder: bytes
    umask: int
    group: int
    descriptors: Mapping[int, int]
    ignored: Sequence[int]
    limits: Sequence[tuple[int, int]]
    arguments: Sequence[bytes]
    environment: Mapping[bytes, bytes]

    @classmethod
    def of_this_process(
        cls,
        arguments: Sequence[str | os.PathLike[str]],
        *,
        folder: str | os.PathLike[str],
        environment: Mapping[str, str],
        descriptors: Mapping[int, int],
    ) -> Request:
        """Return the request for a process with the limits of this one, and no ignored signals."""
        mask = os.umask(0)
        os.umask(mask)
        return cls(
            os.fsencode(folder),
            mask,
            os.getpgrp(),
            descriptors,
            [],
            [resource.getrlimit(kind) for kind in range(_N_LIMITS)],
            [os.fsencode(argument) for argument in arguments],
            {os.fsencode(name): os.fsencode(value) for name, value in environment.items()},
        )

    def send(self, connection: socket.socket) -> None:
        """Send the request with copies of its descriptors."""
        fields = [
            self.folder,
            b"%d" % self.umask,
            b"%d" % self.group,
            b" ".join(b"%d" % number for number in self.descriptors),
            b" ".join(b"%d" % number for number in self.ignored),
            b" ".join(b"%d:%d" % pair for pair in self.limits),
            b"%d" % len(self.arguments),
            *self.arguments,
            *(name + b"=" + value for name, value in self.environment.items()),
        ]
        content = b"".join(field + b"\0" for field in fields)
        header = HEADER.pack(len(content), len(self.descriptors))
        socket.send_fds(connection, [header], list(self.descriptors.values()))
        connection.sendall(content)


def receive(connection: socket.socket) -> Request:
    """Receive a request; its descriptors are open in this process then.

    Raises
    ------
    ConnectionError
        The client has ended.
    """
    header, ancillary, _, _ = connection.recvmsg(HEADER.size, socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS))
    received = array.array("i")
    for _, _, data in ancillary:
        received.frombytes(data)
    try:
        if len(header) < HEADER.size:
            raise ConnectionError("the client has ended")
        n_bytes, n_descriptors = HEADER.unpack(header)
        assert len(received) == n_descriptors, "the system passed on too few descriptors"
        content = bytearray()
        while len(content) < n_bytes:
            part = connection.recv(n_bytes - len(content))
            if not part:
                raise ConnectionError("the client has ended")
            content += part
    except ConnectionError:  # raised again when the descriptors are closed
        for descriptor in received:
            os.close(descriptor)
        raise
    folder, umask, group, numbers, ignored, limits, n_arguments, *rest = bytes(content).split(b"\0")[:-1]
    arguments, variables = rest[: int(n_arguments)], rest[int(n_arguments) :]
    return Request(
        folder,
        int(umask),
        int(group),
        dict(zip(map(int, numbers.split()), received, strict=True)),
        [int(number) for number in ignored.split() if int(number) not in (signal.SIGKILL, signal.SIGSTOP)],
        [(int(soft), int(hard)) for soft, hard in (pair.split(b":") for pair in limits.split())],
        arguments,
        dict(variable.split(b"=", 1) for variable in variables if b"=" in variable),
    )
