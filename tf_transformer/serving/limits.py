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
        InputError: a limit would let nothing through, or is too large for gRPC.
    """

    max_sentences: int = _limit(1024, "most sentences per request; more are refused with 400")
    max_tokens: int = _limit(32_768, "most source tokens per request, in all its sentences; more are refused with 400")
    max_sentence_bytes: int = _limit(65_536, "most bytes per sentence; more are refused with 400")
    max_terms: int = _limit(32, "most terms per sentence; more are refused with 400")
    max_term_tokens: int = _limit(256, "most tokens in the terms of a sentence; more are refused with 400")
    max_body: int = _limit(1 << 20, "most bytes per request; more are refused with 413")
    max_file: int = _limit(10 << 20, "most bytes of a file that is translated; more are refused with 413")
    max_queue: int = _limit(128, "most requests at once, waiting or running; further ones are refused with 429")
    timeout: float = _limit(
        60.0, "seconds after which a request is given up and answered with 504, or a slow body with 408"
    )
    max_batch_tokens: int = _limit(
        1024,
        "most source tokens translated at once, where each sentence counts as long as the longest and as at least 16; "
        "a longer request is split, and a longer sentence goes alone",
    )
    batch_wait: float = _limit(1.0, "milliseconds that a sentence waits for others to share its batch")

    def __post_init__(self) -> None:
        for name in (
            "max_sentences",
            "max_tokens",
            "max_sentence_bytes",
            "max_body",
            "max_file",
            "max_queue",
            "max_batch_tokens",
        ):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1. Received: {getattr(self, name)}")
        for name in ("max_terms", "max_term_tokens"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0. Received: {getattr(self, name)}")
        if self.max_body >= 2**31:
            raise InputError(f"max_body must be below 2**31. Received: {self.max_body}")
        if not 0 < self.timeout < math.inf:
            raise InputError(f"timeout must be a finite number above 0. Received: {self.timeout}")
        if not 0 <= self.batch_wait < math.inf:
            raise InputError(f"batch_wait must be a finite number of at least 0. Received: {self.batch_wait}")


class Refused(Exception):  # noqa: N818
    """A request that the server refuses.

    Args:
        status: the HTTP status.
        message: the message for the client.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
