"""The APIs of models that an agent on an endpoint speaks: what a request says in each, and what an answer means."""
