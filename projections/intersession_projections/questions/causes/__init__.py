"""Why things are as they are: what led to an event, and what it led to, across sessions (WHY-1)."""
