"""Sessions of the OpenAI Agents SDK, written by its own runner: a scripted model, a tool, branches, usage."""

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any


def agent() -> Any:
    """Return an agent that asks for the weather, and says what the tool gave."""
    agents, responses = import_module("agents"), import_module("openai.types.responses")
    interface, items, usage = (
        import_module(f"agents.{name}") for name in ("models.interface", "items", "usage")
    )
    agents.set_tracing_disabled(True)

    async def get_response(self: Any, **asked: Any) -> Any:
        self.calls += 1
        given = asked["input"]
        last = given[-1] if isinstance(given, list) else {"content": given}
        said: Any
        if last.get("type") == "function_call_output":
            text = responses.ResponseOutputText(
                type="output_text", text=f"It is {last['output']}", annotations=[]
            )
            said = responses.ResponseOutputMessage(
                id=f"m{self.calls}", type="message", role="assistant", status="completed", content=[text]
            )
        else:
            said = responses.ResponseFunctionToolCall(
                type="function_call", call_id=f"c{self.calls}", name="weather", arguments='{"city":"Rome"}'
            )
        used = usage.Usage(requests=1, input_tokens=11, output_tokens=3, total_tokens=14)
        return items.ModelResponse(output=[said], usage=used, response_id=None)

    def weather(city: str) -> str:
        """Say what the weather is."""
        return f"rain in {city}"

    scripted = type(
        "Scripted", (interface.Model,), {"calls": 0, "get_response": get_response, "stream_response": None}
    )
    return agents.Agent(name="A", model=scripted(), tools=[agents.function_tool(weather)])


def play_plain(path: Path) -> None:
    """Write a `SQLiteSession`."""
    agents = import_module("agents")
    session = agents.SQLiteSession("User 42", str(path))
    asyncio.run(agents.Runner.run(agent(), "weather?", session=session))
    session.close()


def play_advanced(path: Path) -> None:
    """Write an `AdvancedSQLiteSession`: two turns, and a branch in the place of the second."""
    asyncio.run(_advanced(path))


async def _advanced(path: Path) -> None:
    runner, memory = import_module("agents").Runner, import_module("agents.extensions.memory")
    session = memory.AdvancedSQLiteSession(session_id="adv", db_path=str(path), create_tables=True)
    asked = agent()
    for question in ("weather?", "again?"):
        await session.store_run_usage(await runner.run(asked, question, session=session))
    await session.create_branch_from_turn(2)
    await session.store_run_usage(await runner.run(asked, "other?", session=session))
    session.close()


def play_sqlalchemy(path: Path) -> None:
    """Write a `SQLAlchemySession`."""
    play_sqlalchemy_at(f"sqlite+aiosqlite:///{path}")


def play_sqlalchemy_at(url: str) -> None:
    """Write a `SQLAlchemySession` into the database at a URL."""
    asyncio.run(_sqlalchemy(url))


async def _sqlalchemy(url: str) -> None:
    runner, memory = import_module("agents").Runner, import_module("agents.extensions.memory")
    session = memory.SQLAlchemySession.from_url("alchemy", url=url, create_tables=True)
    await runner.run(agent(), "weather?", session=session)
    await session.engine.dispose()
