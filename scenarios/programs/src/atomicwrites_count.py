"""Counts the runs in a file that is replaced by atomicwrites."""

import sys

from atomicwrites import atomic_write

name = sys.argv[1]
with open(name) as file:
    count = int(file.read())
with atomic_write(name, overwrite=True) as file:
    file.write(f"{count + 1}\n")
