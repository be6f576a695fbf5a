"""Calls the host's code for agents and channels: functions on threads, coroutines on a loop, actors by message."""
