"""What an actor works on right now, in words: a difference says which command led to it."""

from intersession_actors.runtime import Handler, handled_here


def command_at_hand() -> str | None:
    """Return the command that the actor at work has under way; None if none does anything."""
    actor = handled_here()
    if not isinstance(actor, Handler):
        return None
    owner = getattr(actor, "_owner", None)
    command = getattr(owner, "under_way", None)
    current = actor.actor_inbox.current
    return in_words(command if command is not None else current.message if current is not None else None)


def in_words(command: object) -> str | None:
    """Return a command with what tells it from others."""
    if command is None:
        return None
    told = {
        name: value
        for name in ("stream", "run_id", "attempt", "status", "by", "reason")
        if isinstance(value := getattr(command, name, None), str | int) and value
    }
    return f"{type(command).__name__}({', '.join(f'{name}={value!r}' for name, value in told.items())})"
