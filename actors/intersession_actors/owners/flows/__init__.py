"""What exchanges, spawns and deliveries share: the manager of many small streams, and how exchanges and spawns are led."""
