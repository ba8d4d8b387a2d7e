"""The client for asyncio and Trio: what it does is told at its counterparts in `_sync`."""
