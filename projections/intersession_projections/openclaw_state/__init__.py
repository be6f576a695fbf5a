"""Writes an OpenClaw state directory of a log: its sessions, transcripts and sub-agents (EXP-1 to EXP-3)."""

from intersession_projections.openclaw_state.exporting import ExportReport, StateSettings, export_openclaw

__all__ = ["ExportReport", "StateSettings", "export_openclaw"]
