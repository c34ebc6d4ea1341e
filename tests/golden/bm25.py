"""Scores and rankings of BM25, written down from the formula alone, for tests/corpus.rs.

    python3 tests/golden/bm25.py > tests/golden/bm25.json

For each corpus and question it prints the sections that score above 0, the best first, equal ones in the order of the corpus.
Nothing here is taken from the program: sections are cut, words counted and scores added up anew.
"""

import json
import math
import pathlib
import re

K1, B = 1.5, 0.75


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def bm25(documents, question):
    """The score of each document, which is a list of words."""
    n = len(documents)
    average = sum(map(len, documents)) / n
    scores = []
    for document in documents:
        score = 0.0
        for word in words(question):
            tf = document.count(word)
            if tf:
                df = sum(word in other for other in documents)
                idf = math.log((n - df + 0.5) / (df + 0.5) + 1)
                score += idf * (tf * (K1 + 1)) / (tf + K1 * (1 - B + B * len(document) / average))
        scores.append(score)
    return scores


def ranked(sections, question):
    documents = [words(title + " " + text) for _, title, text in sections]
    scored = [(label, score) for (label, _, _), score in zip(sections, bm25(documents, question)) if score > 0]
    scored.sort(key=lambda pair: -pair[1])
    # Twelve places: far below the tolerance, and above what math libraries differ in.
    return [[label, round(score, 12)] for label, score in scored]


def cut(path):
    """The sections of a Markdown file as (label, title, text); what stands before the first one belongs to it."""
    before, *rest = re.split(r"^## (\d+)\. (.*)$", path.read_text(encoding="utf-8"), flags=re.M)
    found = []
    for number, title, text in zip(rest[::3], rest[1::3], rest[2::3]):
        found.append((f"{path.stem}#{number}", title.strip(), before + text))
        before = ""
    return found


def small(*texts):
    return [(f"f#{number}", title, text) for number, (title, text) in enumerate(texts, 1)]


root = pathlib.Path(__file__).resolve().parents[2]
folder = root / "scenarios" / "corpus"
built_in = [section for path in sorted(folder.glob("*.md"), key=lambda p: p.stem) for section in cut(path)]
questions = [
    line.strip()
    for line in (folder / "questions.txt").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]

CASES = {
    # Every kind of word: in all documents, in most, in one, in none; and a document without any word.
    "common and rare words": (
        small(
            ("Rename", "the rename is atomic: old or new"),
            ("Fsync", "the fsync, then the rename; fsync the folder. FSYNC!"),
            ("Locks", "the flock and the rename of the lock"),
            ("Codes", "the exit code 75, the exit code 65"),
        ),
        ["the", "rename", "flock", "rename the flock", "fsync", "nowhere", "nowhere the", "", " ,;- ", "the the the", "exit exit code"],
    ),
    "an empty document": (
        small(("Rename", "A rename is atomic"), ("", ""), ("Lock", "A lock is held; a lock ends")),
        ["a", "rename", "lock a lock", "empty", ""],
    ),
    "no document has a word": (small(("", ""), ("-", "...")), ["a", ""]),
    "one document": (small(("Rename", "a rename is atomic")), ["rename", "rename rename", "lock"]),
    "equal documents": (
        small(("t", "x"), ("t", "y"), ("t", "x"), ("x", "t"), ("t", "x x"), ("t", "x")),
        ["x", "y", "t", "t x", "x y"],
    ),
    "letters beyond ASCII": (
        small(
            ("\u00c9xit Codes", "Stra\u00dfe and na\u00efve ext4, CAF\u00c9 75"),
            ("Kelvin", "273 \u212aelvin; loc\u212a; \u0130stanbul"),
            ("Lock", "flock and lockf\u00e9"),
        ),
        ["Stra\u00dfe 75 EXT4", "\u212aelvin", "loc\u212a", "\u00e9xit", "i stanbul", "\u00e9\u00df"],
    ),
}

print(
    json.dumps(
        {
            "built_in": {
                "sections": [label for label, _, _ in built_in],
                "questions": {question: ranked(built_in, question) for question in questions},
            },
            "cases": [
                {
                    "name": name,
                    "sections": [[title, text] for _, title, text in sections],
                    "questions": {question: ranked(sections, question) for question in asked},
                }
                for name, (sections, asked) in CASES.items()
            ],
        },
        indent=1,
    )
)
