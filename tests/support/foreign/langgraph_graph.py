"""A graph of LangGraph, run on a saver: tools, a subgraph, an interrupt that is answered, and a branch from an earlier checkpoint."""

from importlib import import_module
from typing import Annotated, Any

THREAD = "Trip 1"


def graph(saver: Any) -> Any:
    """Return the compiled graph. Its model is scripted: it asks for the weather, and says what the tool gave."""
    graphs, types = import_module("langgraph.graph"), import_module("langgraph.types")
    messages, tools = import_module("langchain_core.messages"), import_module("langchain_core.tools")

    def model(state: Any) -> Any:
        last = state["messages"][-1]
        if last.type == "tool":
            said = messages.AIMessage(
                f"It is {last.content}",
                usage_metadata={"input_tokens": 20, "output_tokens": 4, "total_tokens": 24},
                response_metadata={
                    "model_name": "m1",
                    "finish_reason": "stop",
                    "token_usage": {"cost": 0.25},
                },
            )
        elif "weather" in str(last.content):
            call = {"name": "weather", "args": {"city": "Rome"}, "id": "call_1"}
            said = messages.AIMessage(
                "",
                tool_calls=[call],
                usage_metadata={
                    "input_tokens": 10,
                    "output_tokens": 3,
                    "total_tokens": 13,
                    "input_token_details": {"cache_read": 2},
                },
            )
        else:
            said = messages.AIMessage("Hello")
        return {"messages": [said]}

    def weather(city: str) -> str:
        """Say what the weather is."""
        return f"rain in {city}"

    def inner(state: Any) -> Any:
        return {"messages": [messages.AIMessage(f"inner says {state['messages'][-1].content}")]}

    def ask(state: Any) -> Any:
        del state
        return {"messages": [messages.HumanMessage(f"approved: {types.interrupt({'question': 'ok?'})}")]}

    def after(state: Any) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else "research"

    # A function of ours may be called with a callback alone: typed as anything, its annotations are read at run time.
    sub = graphs.StateGraph(graphs.MessagesState)
    sub.add_node("inner", inner)
    sub.add_edge(graphs.START, "inner")
    made = graphs.StateGraph(graphs.MessagesState)
    made.add_node("model", model)
    made.add_node("tools", import_module("langgraph.prebuilt").ToolNode([tools.tool(weather)]))
    made.add_node("research", sub.compile())
    made.add_node("ask", ask)
    made.add_edge(graphs.START, "model")
    made.add_conditional_edges("model", after, ["tools", "research"])
    made.add_edge("tools", "model")
    made.add_edge("research", "ask")
    return made.compile(checkpointer=saver)


def play_deltas(saver: Any) -> None:
    """Ask six questions of a graph whose messages are in a channel that keeps what changes, with a snapshot now and then."""
    graphs, channels = import_module("langgraph.graph"), import_module("langgraph.channels")
    messages = import_module("langchain_core.messages")
    reducer = import_module("langgraph.graph.message")._messages_delta_reducer
    kept: Any = Annotated[list[Any], channels.DeltaChannel(reducer, snapshot_frequency=3)]
    state: Any = type("State", (dict,), {"__annotations__": {"messages": kept}})
    made = graphs.StateGraph(state)

    def answer(state: Any) -> Any:
        return {"messages": [messages.AIMessage(f"answer to {state['messages'][-1].content}")]}

    made.add_node("answer", answer)
    made.add_edge(graphs.START, "answer")
    app = made.compile(checkpointer=saver)
    for number in range(6):
        asked = messages.HumanMessage(f"question {number}")
        app.invoke({"messages": [asked]}, {"configurable": {"thread_id": "deltas"}})


def play(saver: Any, *, forks: bool = True) -> None:
    """Ask for the weather, answer the interrupt, and go back to where the model was asked, with another question."""
    messages, types = import_module("langchain_core.messages"), import_module("langgraph.types")
    app, config = graph(saver), {"configurable": {"thread_id": THREAD}}
    app.invoke({"messages": [messages.HumanMessage("weather in Rome?")]}, config)
    app.invoke(types.Command(resume="fine"), config)
    if forks:
        asked = [each for each in app.get_state_history(config) if each.next == ("model",)][-1]
        other = messages.HumanMessage("weather in Paris?", id=asked.values["messages"][-1].id)
        app.invoke(None, app.update_state(asked.config, {"messages": [other]}))
