"""Counts the runs in a pickleDB database, under a key of its own if one is given."""

import sys

from pickledb import PickleDB

with PickleDB(sys.argv[1]) as db:
    key = sys.argv[2] if len(sys.argv) > 2 else "runs"
    db.set(key, db.get(key, 0) + 1)
