"""The deciding package: pure rules, thin actors, and what they need from outside. The only package with threads of its own."""
