"""Snapshots of states, on the eventsourcing library's snapshot store: a recorder, a mapper, and folding from them on."""

from intersession_events.stores.snapshots.mapper import SnapshotMapper
from intersession_events.stores.snapshots.recorder import TABLE, KeepsSnapshots, OnTheWay
from intersession_events.stores.snapshots.states import Later, Read, StreamStates

__all__ = ["TABLE", "KeepsSnapshots", "Later", "OnTheWay", "Read", "SnapshotMapper", "StreamStates"]
