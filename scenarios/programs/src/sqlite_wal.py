"""Adds two entries to a SQLite database in WAL mode, each in a transaction of its own, with the module of Python."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1])
for name in ["first", "second"]:
    with connection:
        connection.execute("INSERT INTO entries (text) VALUES (?)", [name + " " + "x" * 3000])
    print("committed", name, flush=True)
connection.close()
