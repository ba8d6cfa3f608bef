"""The base class of objects that are closed at the end of a ``with`` statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """A context manager that calls :meth:`close` at the end of its block, including after an exception."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; further calls have no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
