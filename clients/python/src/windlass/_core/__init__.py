"""What both clients do, written once as coroutines: see `transport.py` for how one of them is driven without an event
loop.
"""
