"""The spawner: drives each `sessions_spawn` through its child's task, the announce and the archiving."""
