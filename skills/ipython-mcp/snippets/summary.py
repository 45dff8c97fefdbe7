# SPDX-License-Identifier: MIT
"""summary(value): any value in a few lines, whatever its size."""

import itertools
from collections.abc import Mapping, Sequence, Set


def summary(value: object, items: int = 5, chars: int = 80) -> dict:
    """A bounded description: type, size, and the first items; for tables columns and a few rows."""

    def short(part: object) -> str:
        try:
            text = repr(part) if not isinstance(part, str) else part
        except Exception as e:
            text = f"<repr failed: {type(e).__name__}>"
        return text if len(text) <= chars else text[: chars - 1] + "…"

    kind = type(value)
    found = {"type": kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"}
    if hasattr(value, "columns") and hasattr(value, "dtypes") and hasattr(value, "head"):  # a data frame
        found["shape"] = [int(n) for n in value.shape]
        found["columns"] = {short(c): str(t) for c, t in itertools.islice(dict(value.dtypes).items(), items * 4)}
        found["missing"] = int(value.isna().sum().sum())
        found["head"] = [[short(cell) for cell in row[: items * 4]] for row in value.head(items).values.tolist()]
    elif hasattr(value, "shape") and hasattr(value, "dtype"):  # an array or a series
        found["shape"] = [int(n) for n in value.shape]
        found["dtype"] = str(value.dtype)
        flat = value.ravel() if hasattr(value, "ravel") else value
        found["first"] = [short(x) for x in itertools.islice(iter(flat), items)]
    elif isinstance(value, Mapping):
        found["len"] = len(value)
        found["first"] = {short(k): short(v) for k, v in itertools.islice(value.items(), items)}
    elif isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes, bytearray)):
        found["len"] = len(value)
        found["first"] = [short(x) for x in itertools.islice(value, items)]
    else:
        if hasattr(value, "__len__"):
            found["len"] = len(value)
        found["value"] = short(value)
    return found
