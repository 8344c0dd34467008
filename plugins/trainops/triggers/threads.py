"""Threads in which a triggerer's runs ask Google's services: such calls block, and wait for the network."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from trainops.gcp.session import CONNECTIONS

P = ParamSpec("P")
T = TypeVar("T")

BACKGROUND_THREADS = 8

_BACKGROUND = ThreadPoolExecutor(BACKGROUND_THREADS, thread_name_prefix="trainops-background")
"""For what every run does once a minute or once: a thousand of them must not stand in line before an end."""

_URGENT = ThreadPoolExecutor(CONNECTIONS - BACKGROUND_THREADS, thread_name_prefix="trainops")
"""For the rest. The threads of `asyncio.to_thread` are few (cores + 4), and those of all triggers of a triggerer, also
of other packages: a burst of ends would queue up there, and hold up the others."""


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `function` returns, called in a thread with the context of the caller."""
    return await _called(_URGENT, partial(function, *args, **kwargs))


async def in_background(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_thread`, for what may wait."""
    return await _called(_BACKGROUND, partial(function, *args, **kwargs))


async def _called(pool: Executor, function: Callable[[], T]) -> T:
    call = partial(contextvars.copy_context().run, function)
    return await asyncio.get_running_loop().run_in_executor(pool, call)
