"""Moved to tests.support.cards."""

from tests.support.cards import act, boxes, component, listed, replaced, tick, widgets_of

__all__ = ["act", "boxes", "component", "listed", "replaced", "tick", "widgets_of"]
