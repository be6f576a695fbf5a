"""How fast it is: each module measures one thing in a process of its own, and asserts nothing about time."""
