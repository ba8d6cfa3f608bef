"""What can be closed, as a context manager."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """Closed at the end of a with-block, however that ends."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held; closing again does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
