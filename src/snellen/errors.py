"""The tree of exceptions that Snellen raises.

    SnellenError                 exit code 1: an expected failure, one line and a hint
    ├── UsageError               exit code 2: the command or the call is wrong
    ├── SettingsError            a configuration file or value is wrong
    ├── DataError                a benchmark, a reply file or a table is wrong (file, row, field)
    │   └── ImageError           a picture cannot be sent (an item's failure, not a run's)
    ├── TemplateError            a prompt file lacks a field or has an unknown one
    ├── RunFolderError           a run folder is locked, foreign or does not match
    ├── ComparisonError          runs that must not be compared
    ├── MissingExtraError        an optional library is not installed
    └── EndpointError            an endpoint failed for good; exit code 1, or 3 after verdicts

A failed call is not an exception: it is a `records.CallFailure`, a value that a flow receives.
"""

from __future__ import annotations

from pathlib import Path

INTERRUPTED = 130
"""The exit code of what Ctrl-C has ended."""


class SnellenError(Exception):
    """An expected failure: one line that says what was found, and a hint what to do."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """How it is pickled: as it stands, since subclasses are made of other words.

        What cannot be unpickled is lost between processes, and a pool waits for it for ever.
        """
        return _as_it_was, (type(self), self.args), self.__dict__


def _as_it_was(kind: type[SnellenError], args: tuple[object, ...]) -> SnellenError:
    return kind.__new__(kind, *args)


class UsageError(SnellenError):
    """The command or the call asks for something that cannot be asked for."""

    exit_code = 2


class SettingsError(SnellenError):
    """A setting is unknown or has a value that it cannot have."""


class DataError(SnellenError):
    """A file of the user's is wrong; the message names file, row and field.

    Rows count from 1, as editors count lines.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path = "",
        row: int | None = None,
        field: str = "",
        hint: str = "",
    ) -> None:
        place = str(file)
        if row is not None:
            place += f", row {row}" if place else f"row {row}"
        if field:
            place += f", field `{field}`" if place else f"field `{field}`"
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.file, self.row, self.field = str(file), row, field


class ImageError(DataError):
    """A picture that no model can be shown: broken, missing, or too large to decode."""


class TemplateError(SnellenError):
    """A prompt file misses a field that its protocol needs, or names one that does not exist."""


class RunFolderError(SnellenError):
    """A run folder is in use, belongs to another run, or holds something that is no run."""


class ComparisonError(SnellenError):
    """Two runs differ in something that would make their difference meaningless."""


class MissingExtraError(SnellenError):
    """An optional part is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} is not installed", hint=f"install it with: pip install 'snellen[{extra}]'"
        )


class EndpointError(SnellenError):
    """An endpoint failed for good: wrong key, unknown model, no quota, or nobody there."""

    def __init__(self, message: str, *, kind: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
