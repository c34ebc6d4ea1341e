"""Adds an entry to a list in a JSON file: into a new file first, which then replaces the old one."""

import json
import os
import sys

name = sys.argv[1]
with open(name) as file:
    entries = json.load(file)
entries.append({"number": len(entries), "text": "x" * 100})
with open(name + ".tmp", "w") as file:
    json.dump(entries, file)
    file.flush()
    os.fsync(file.fileno())
os.replace(name + ".tmp", name)
