"""Answers to the questions of the commands, made of results and facts. Pure functions; renderers print their results.

An answer is the last gate before a PASS: it says yes only when every rule that answers the question was run and passed.
"""
