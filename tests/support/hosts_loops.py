"""Event loops of a host's, in the tests that stop one with tasks on it."""

import asyncio


def end_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what a stopped loop still has, and close it.

    A task that is dropped instead says so at the next search for garbage, on the console of whichever test runs then.
    """

    async def cancel_the_others() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    loop.run_until_complete(cancel_the_others())
    loop.close()
