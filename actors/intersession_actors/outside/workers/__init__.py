"""The writer's side of agents and channels that workers call: what is offered to them, and what they answer (WORK)."""
