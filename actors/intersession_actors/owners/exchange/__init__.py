"""The coordinator: drives each `sessions_send` through its run, the reply-back loop and the announce."""
