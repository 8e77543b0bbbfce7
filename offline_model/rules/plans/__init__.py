"""What is done about a wish: the plans, the second column of the table of wishes.

A plan is given what was understood and what earlier turns tell. It yields the tool calls of a step, is sent their
results, and returns what to say: as a rule `telling.told`, which fills the wish's answer in from the results.
"""
