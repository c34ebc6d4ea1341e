"""Adds an entry to a SQLite database in WAL mode, with the module that comes with Python."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode = WAL")
with connection:
    connection.execute("INSERT INTO entries (text) VALUES (hex(zeroblob(3000)))")
connection.close()
