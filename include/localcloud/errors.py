"""Errors that a person can do something about; the command line prints them without a traceback."""

from __future__ import annotations


class LocalCloudError(Exception):
    """Something that the local cloud cannot do, and what to do now; the command line ends with `exit_code`."""

    exit_code = 1


class UsageError(LocalCloudError):
    """The person's input cannot be used."""

    exit_code = 2
