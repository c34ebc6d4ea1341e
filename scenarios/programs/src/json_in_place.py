"""Adds an entry to a list in a JSON file, and writes the file over itself."""

import json
import sys

name = sys.argv[1]
with open(name) as file:
    entries = json.load(file)
entries.append({"number": len(entries), "text": "x" * 100})
with open(name, "w") as file:
    json.dump(entries, file)
