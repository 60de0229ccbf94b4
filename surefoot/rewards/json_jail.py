"""Applies a JSON schema to a JSON text. Runs inside the jail, one fork for each answer."""

from __future__ import annotations

import json
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

MESSAGE = 300
"""Characters of a message, which quotes the value and the schema."""
_NOTHING_REMOTE: Registry[Any] = Registry()


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """`{"fits": bool, "place": JSON path, "message": text}`, or `{"fault": text}` where the schema is none.

    The dialect is that of `$schema`, else draft 2020-12; formats that need no further package are checked.
    """
    schema = request["schema"]
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        validator = kind(schema, format_checker=kind.FORMAT_CHECKER, registry=_NOTHING_REMOTE)
        error = next(validator.iter_errors(json.loads(request["text"])), None)
    except (SchemaError, Unresolvable) as fault:
        return {"fault": str(getattr(fault, "message", fault))[:MESSAGE]}
    if error is None:
        return {"fits": True}
    return {"fits": False, "place": error.json_path[:MESSAGE], "message": error.message[:MESSAGE]}


handle({"schema": {"type": "object", "properties": {"a": {"pattern": "b", "format": "date"}}}, "text": '{"a": 1}'})
