#!/usr/bin/env python3
"""Draws tools/layers.txt into ARCHITECTURE.md (--check: says whether the picture there is right)."""

import os
import re
import sys

from check_layers import read_table

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PICTURE = re.compile(r"(?<=<!-- layers -->\n).*?(?=<!-- /layers -->)", re.S)


def picture(layers):
    """A Mermaid graph of the table, without the arrows that others imply."""
    reach = {}
    lines = ["```mermaid", "graph TD"]
    for name, uses in layers:
        implied = set().union(*(reach[use] for use in uses))
        reach[name] = implied | set(uses)
        direct = [use for use in uses if use not in implied]
        lines.append(f"  {name}" + (" --> " + " & ".join(direct) if direct else ""))
    return "\n".join(lines + ["```", ""])


def main():
    path = os.path.join(ROOT, "ARCHITECTURE.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    drawn = PICTURE.sub(lambda _: picture(read_table(os.path.join(ROOT, "tools/layers.txt"))), text)
    if "--check" in sys.argv:
        if drawn != text or not PICTURE.search(text):
            print("ARCHITECTURE.md does not show tools/layers.txt: run tools/draw_layers.py")
            return 1
        return 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
