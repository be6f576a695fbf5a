"""A host that is told one message after another, and goes on where it was killed. Run as `python -m support.processes.long_talk`."""

import sys

from intersession import MemoryChannel, SessionSystem, openai_agent

TEXT = "What about the weather in Oslo, and in Bergen, and further north? " * 3


def talk(store: str, endpoint: str, messages: int) -> None:
    """Say all messages, each by its own id: what was said before a kill is known, and answers at once."""
    agent = openai_agent(
        model="tiny",
        base_url=endpoint,
        api_key="none",
        context_tokens=8_000,
        client_options={"max_retries": 0},
    )
    config = {"runs": {"retryInterrupted": 9}, "checkpoints": {"everyEvents": 5_000}}
    with SessionSystem(
        store, agents={"main": agent}, channels={"chat": MemoryChannel()}, config=config
    ) as system:
        for number in range(messages):
            answer = system.inbound(
                channel="chat",
                chat_id="42",
                sender="ann",
                text=f"{number}. {TEXT}",
                message_id=str(number),
                wait=60,
            )
            sys.stdout.write(f"{number} {answer['status']}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    talk(sys.argv[1], sys.argv[2], int(sys.argv[3]))
