"""Stored objects whose fields grow: what came later is not written while unused, since older readers refuse it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, SerializerFunctionWrapHandler, model_serializer


class LaterFields(BaseModel):
    """Leaves fields of `LATER` out of what is written, as long as they hold their defaults.

    A rolling deployment has processes of two versions, which share records, requests and plans.
    """

    LATER: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        unused = {
            name for name in self.LATER if getattr(self, name) == fields[name].get_default(call_default_factory=True)
        }
        return {key: value for key, value in dump(self).items() if key not in unused}
