"""What an agent sees: one module a tool."""
