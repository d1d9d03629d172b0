"""Warnings that name a line of the user's."""

import sys
import warnings

#: Whose lines are passed over: this library, and what calls it on behalf of others.
_BETWEEN = ("bigcn", "torch", "torch_geometric")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns, naming the innermost line that is not of a library.

    Args:
        message (str): What there is to say.
        category (type, optional): The kind of warning. (default: :class:`UserWarning`)
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
