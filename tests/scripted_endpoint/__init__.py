"""The offline model as tests need it: it answers and breaks as it is told to, and keeps what it was asked.

What it was not told, the offline model's rules answer.
"""
