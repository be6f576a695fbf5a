"""LangGraph: two nodes that answer each other, with its SQLite checkpoints and `durability="sync"`."""

import operator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypedDict

from benchmarks.rivals import meter


class State(TypedDict):
    """What is said, and how many turns there were."""

    said: Annotated[list[str], operator.add]
    turn: int


def answer(state: State) -> dict[str, Any]:
    return {"said": [meter.REPLY], "turn": state["turn"] + 1}


def main(directory: Path, sizes: dict[str, Any]) -> None:
    graphs: Any = import_module("langgraph.graph")
    saver: Any = import_module("langgraph.checkpoint.sqlite").SqliteSaver

    def to(other: str) -> Any:
        return lambda state: graphs.END if state["turn"] == sizes["turns"] else other

    builder = graphs.StateGraph(State)
    builder.add_node("desk", answer)
    builder.add_node("main", answer)
    builder.add_edge(graphs.START, "desk")
    builder.add_conditional_edges("desk", to("main"), ["main", graphs.END])
    builder.add_conditional_edges("main", to("desk"), ["desk", graphs.END])
    with saver.from_conn_string(str(directory / "graph.db")) as checkpointer:
        checkpointer.setup()
        checkpointer.conn.execute("PRAGMA synchronous=FULL")
        graph = builder.compile(checkpointer=checkpointer)

        def exchange(pair: int, number: int) -> None:
            config = {"configurable": {"thread_id": f"{pair}-{number}"}}
            graph.invoke({"said": [meter.MESSAGE], "turn": 0}, config, durability="sync")

        meter.talk(exchange, sizes)


if __name__ == "__main__":
    main(*meter.given())
