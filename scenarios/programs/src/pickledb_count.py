"""Counts the runs in a pickleDB database."""

import sys

from pickledb import PickleDB

with PickleDB(sys.argv[1]) as db:
    db.set("runs", db.get("runs", 0) + 1)
