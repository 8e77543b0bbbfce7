"""The workload of `python -m tests.chaos --agents`: users who start agents, and checks of what the agents did."""
