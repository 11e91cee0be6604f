"""What files of a request hold, in words for a model: tables, documents, folders; standard library only.

`describe.py` is where it begins. The modules import one another relatively, and nothing of `guest` beside them.
"""
