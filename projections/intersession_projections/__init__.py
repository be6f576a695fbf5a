"""Views: how the log looks. Read only, rebuilt at will; imports events, knows no Pykka."""
