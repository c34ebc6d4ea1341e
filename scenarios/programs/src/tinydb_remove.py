"""Removes the entries of a TinyDB database that are done. What is left of the database is shorter than it was."""

import sys

from tinydb import TinyDB, where

with TinyDB(sys.argv[1]) as db:
    db.remove(where("done") == True)  # noqa: E712: this makes a query
