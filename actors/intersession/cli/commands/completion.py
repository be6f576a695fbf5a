"""`intersession completion`: what a shell needs to complete commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter

from intersession.cli.app import app
from intersession.cli.shell import Answer, Json, Screen


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell: bash, zsh or fish.")],
    /,
    *,
    json: Json = False,
) -> Answer:
    """Print the script by which a shell completes commands.

    For bash: `intersession completion bash > ~/.local/share/bash-completion/completions/intersession`.
    """
    del json
    script = app.generate_completion(shell=shell)

    def show(screen: Screen) -> None:
        for line in script.splitlines():
            screen.to_copy(line)

    return Answer({"shell": shell, "script": script}, show)
