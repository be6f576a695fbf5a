"""Snapshots of states, on the eventsourcing library's snapshot store: a recorder, a mapper, and folding from them on."""

from intersession_events.stores.snapshots.mapper import SnapshotMapper
from intersession_events.stores.snapshots.recorder import SNAPSHOTS, TABLE, KeepsSnapshots, OnTheWay
from intersession_events.stores.snapshots.states import FromSnapshot, Later, Read, StreamStates

__all__ = [
    "SNAPSHOTS",
    "TABLE",
    "FromSnapshot",
    "KeepsSnapshots",
    "Later",
    "OnTheWay",
    "Read",
    "SnapshotMapper",
    "StreamStates",
]
