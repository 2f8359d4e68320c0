"""Count the phrases of ``phrases.toml`` in documents, docstrings and comments; none may be added.

``python docs/check_phrases.py`` fails if one is found more often than its allowed count, and shows
where. ``--show NUMBER`` shows where the phrase of that number is. ``--lower`` writes lower counts.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
LIST = HERE / "phrases.toml"
# Folders that are generated or hold texts of others, and the changelog, which quotes older texts.
LEFT_OUT = {"__pycache__", "build", "node_modules", "CHANGELOG.md"}
MADE = r"^<!-- \w[^\n]* -->$.*?^<!-- end -->$"  # from other files, where the words are checked
NO_PROSE = re.compile(rf"{MADE}|^```.*?^```", re.DOTALL | re.MULTILINE)
WORDS_OF_CODE = re.compile(r'"""(.*?)"""|(?:^|(?<=\s))#\s([^\n]*)', re.DOTALL)


def texts(root):
    """Yield kind, path and prose of each file, with a blank in place of each line break."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.suffix not in (".md", ".py") or LEFT_OUT & set(parts) or parts[0][0] == ".":
            continue
        words = path.read_text()
        if path.suffix == ".md":
            yield "docs", path, " ".join(NO_PROSE.sub("", words).split())
        else:
            found = (" ".join(each) for each in WORDS_OF_CODE.findall(words))
            yield "code", path, " ".join(" ".join(found).split())


def count(root, phrases):
    """Return, for each phrase, the places where it is found, by kind."""
    found = [{"docs": [], "code": []} for _ in phrases]
    patterns = [re.compile(phrase["found"]) for phrase in phrases]
    for kind, path, text in texts(root):
        for number, pattern in enumerate(patterns):
            for match in pattern.finditer(text):
                around = text[max(match.start() - 60, 0) : match.end() + 40]
                found[number][kind].append(f"{path.relative_to(root)}: ...{around}...")
    return found


def written(phrases, found):
    """Return the text of the list, with each count that was found in place of a higher one."""
    head = LIST.read_text().partition("[[phrase]]")[0]
    for phrase, places in zip(phrases, found, strict=True):
        head += f"[[phrase]]\nfound = '{phrase['found']}'\ninstead = \"{phrase['instead']}\"\n"
        for kind, each in places.items():
            head += f"{kind} = {min(phrase.get(kind, len(each)), len(each))}\n"
        head += "\n"
    return head.rstrip() + "\n"


def main():
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lower", action="store_true")
    parser.add_argument("--show", type=int)
    options = parser.parse_args()
    phrases = tomllib.loads(LIST.read_text())["phrase"]
    found = count(HERE.parent, phrases)
    if options.show is not None:
        print(*(place for each in found[options.show].values() for place in each), sep="\n")
        return 0
    if options.lower:
        LIST.write_text(written(phrases, found))
        return 0
    failed = False
    for phrase, places in zip(phrases, found, strict=True):
        for kind, each in places.items():
            if len(each) > phrase[kind]:
                failed = True
                print(f"{phrase['found']!r} is found {len(each)} times in {kind}, and may be")
                print(f"{phrase[kind]} times; instead: {phrase['instead']}")
                print(*(f"    {place}" for place in each), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
