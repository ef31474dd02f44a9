"""How much a client may ask for."""

import dataclasses
import math
from typing import Any

from tf_transformer.errors import InputError


def _limit(default: Any, help: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What the server refuses, and how it batches.

    Raises:
        InputError: a limit that would let nothing through, or that gRPC cannot hold.
    """

    max_sentences: int = _limit(1024, "sentences of a request; more is refused with 400")
    max_tokens: int = _limit(32_768, "source tokens of a request, all sentences together; more is refused with 400")
    max_body: int = _limit(1 << 20, "bytes of a request; more is refused with 413")
    max_queue: int = _limit(128, "requests at once, waiting or running; a further one is refused with 429")
    timeout: float = _limit(60.0, "seconds until a request is answered with 504, or a slow body with 408")
    max_batch_tokens: int = _limit(
        1024,
        "source tokens translated at once, each sentence counted as long as the longest, and as 16 at least; a longer "
        "request is split, a longer sentence goes alone",
    )
    batch_wait: float = _limit(1.0, "milliseconds that a sentence waits for others to be translated with")

    def __post_init__(self) -> None:
        for name in ("max_sentences", "max_tokens", "max_body", "max_queue", "max_batch_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1. Received: {getattr(self, name)}")
        if self.max_body >= 2**31:
            raise InputError(f"max_body must be below 2**31. Received: {self.max_body}")
        if not 0 < self.timeout < math.inf:
            raise InputError(f"timeout must be above 0, and finite. Received: {self.timeout}")
        if not 0 <= self.batch_wait < math.inf:
            raise InputError(f"batch_wait must be at least 0, and finite. Received: {self.batch_wait}")


class Refused(Exception):  # noqa: N818
    """A request that is not answered as it wishes.

    Args:
        status: of HTTP.
        message: for the client.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
