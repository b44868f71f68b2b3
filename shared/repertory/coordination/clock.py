"""The clock that the processes of a team share: the Redis server's.

Their own clocks may differ by any amount, so none is ever compared with another's.
"""

# The first lines of scripts that need the time, in seconds since the epoch.
NOW = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
"""
