"""Chat services that tests run by themselves: real clients connect to them over HTTP and WebSocket.

Each keeps what a host has not confirmed, as the real one does, and can be away, ask for a pause, or cut connections.
"""

from support.chats.discord import FakeDiscord
from support.chats.slack import FakeSlack
from support.chats.telegram import FakeTelegram

__all__ = ["FakeDiscord", "FakeSlack", "FakeTelegram"]
