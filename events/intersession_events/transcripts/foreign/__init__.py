"""Imports what other frameworks keep of their agents: LangGraph's checkpoints, sessions of the OpenAI Agents SDK.

A reader brings it into the form of an OpenClaw state directory, and the import of that does the rest.
"""
