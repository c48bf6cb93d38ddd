#!/usr/bin/env python3
"""Checks the rules of the tree that a compiler does not: who may include whom, sizes, words.

tools/layers.txt is the table of the project's own folders, tools/includes.txt that of headers from
outside. Prints one line per violation, `file:line: what`, and exits 1 when there is one.
check_layers_test.py plants each violation and sees it found.
"""

import ast
import fnmatch
import os
import re
import sys

FOLDERS = ("include", "src", "cli", "python", "testing", "sim", "test", "fuzz", "bench", "tools",
           "examples", "cmake")
MAX_FILE, MAX_FUNCTION = 800, 70
MAX_COLUMNS, MAX_PYTHON_COLUMNS = 100, 120
GENERATED = ("python/forebay/_core.pyi",)  # a test compares it with its generator's output
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)
STANDARD = re.compile(r"^[a-z_0-9]+$")
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\s\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.S)
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
SKIPPED = re.compile(r"\bGTEST_" r"SKIP\b|\bDIS" r"ABLED_\w|pytest\.(?:mark\.)?(?:skip|xfail)")
# (what is searched, where it is allowed, why it is not elsewhere)
WORDS = (
    (re.compile(r"\bstd::(?:(?:recursive_|shared_|timed_)*mutex|condition_variable)\b"),
     ("src/base/mutex.h", "python/bind/", "cli/", "bench/"),
     "use the annotated mutex of base/mutex.h: clang checks what it guards"),
    (re.compile(r"\bstd::(?:j?thread|async)\b"),
     ("src/sys/", "testing/", "sim/", "bench/", "*_test.cc", "python/bind/interrupt"),
     "threads are started by sys/ alone"),
)
THROW = re.compile(r"\bthrow\b")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def under(path, places):
    """Whether path lies under one of the prefixes or matches one of the patterns."""
    return any(fnmatch.fnmatch(path, p) if "*" in p else
               path == p or path.startswith(p if p.endswith("/") else p + "/") or
               (path.startswith(p + ".") or path.startswith(p + "_")) for p in places)


def read_table(path):
    """The lines `name: words` of a table, in order, as [(name, [word])]."""
    rows = []
    with open(path, encoding="utf-8") as table:
        for line in table:
            line = line.split("#")[0].strip()
            if line:
                name, _, words = line.partition(":")
                rows.append((name.strip(), words.split()))
    return rows


class Tree:
    """The files of one checkout and what is wrong with them."""

    def __init__(self, root):
        self.root = root
        self.found = []
        self.layers = dict(read_table(os.path.join(root, "tools/layers.txt")))
        self.outside = read_table(os.path.join(root, "tools/includes.txt"))
        self.files = {}
        for folder in FOLDERS:
            for where, folders, names in os.walk(os.path.join(root, folder)):
                folders[:] = sorted(f for f in folders if f != "__pycache__")
                for name in sorted(names):
                    full = os.path.join(where, name)
                    if not os.path.islink(full) and self.is_text(name):
                        with open(full, encoding="utf-8") as file:
                            self.files[os.path.relpath(full, root)] = file.read()

    @staticmethod
    def is_text(name):
        return name.endswith((".h", ".cc", ".py", ".pyi", ".sh", ".cmake")) or \
            name == "CMakeLists.txt"

    def say(self, path, line, what):
        self.found.append(f"{path}:{line}: {what}")

    def check(self):
        self.check_table()
        for path, text in self.files.items():
            self.check_text(path, text)
            if path.endswith((".h", ".cc")):
                code = NOT_CODE.sub(blank, text)
                self.check_includes(path, text)
                self.check_words(path, code)
                self.check_functions(path, code)
            if path.endswith(".cc"):
                self.check_target(path)
            if path.endswith(".py"):
                self.check_python(path, text)
        return self.found

    def check_table(self):
        above = []
        for name, uses in self.layers.items():
            for use in uses:
                if use not in above:
                    self.say("tools/layers.txt", 1, f"{name} names {use}, which is not above it")
            above.append(name)
        for path in self.files:
            part = path.split("/")
            if part[0] == "src" and len(part) > 2 and part[1] not in self.layers:
                self.say(path, 1, f"src/{part[1]} has no line in tools/layers.txt")

    def check_text(self, path, text):
        if path in GENERATED:
            return
        lines = text.split("\n")
        if len(lines) - 1 > MAX_FILE:
            self.say(path, MAX_FILE, f"{len(lines) - 1} lines; a file has at most {MAX_FILE}")
        columns = MAX_PYTHON_COLUMNS if path.endswith(".py") else MAX_COLUMNS
        for number, line in enumerate(lines, 1):
            if len(line) > columns:
                self.say(path, number, f"{len(line)} columns; a line has at most {columns}")
            if UNFINISHED.search(line):
                self.say(path, number, "unfinished: do it, or file it; the tree holds no reminders")
            if SKIPPED.search(line):
                self.say(path, number, "a skipped test: make it run, or take it out")

    def check_includes(self, path, text):
        for match in INCLUDE.finditer(text):
            number, name = line_of(text, match.start()), match.group(2)
            if match.group(1) == '"':
                wrong = self.own_include(path, name)
            else:
                wrong = self.outside_include(path, name)
            if wrong:
                self.say(path, number, wrong)

    def own_include(self, path, name):
        """What is wrong with a quoted include, or None."""
        top, module = path.split("/")[0], path.split("/")[1]
        target = name.split("/")[0]
        if target == "forebay":
            return None
        if top == "include":
            return f"a public header includes {name}; only forebay/ and the standard library"
        if top in ("cli", "python"):
            if "/" not in name or name.startswith(("cli/", "bind/")):
                return None
            return f"{top}/ includes {name}; it stands on include/forebay alone"
        if target in ("testing", "sim", "fuzz", "bench"):
            if top in ("testing", "sim", "bench", "test", "fuzz") or path.endswith("_test.cc"):
                return None
            return f"the product includes {name}, which is for tests"
        if target not in self.layers:
            return f"{name}: no such folder in tools/layers.txt (includes name the folder)"
        if "/detail/" in name and not path.startswith((f"src/{target}/", "fuzz/")):
            return f"{name} is inside {target}; only {target} may include it"
        if top == "src" and target != module and target not in self.layers.get(module, ()):
            return f"{module} may not use {target} (tools/layers.txt)"
        return None

    def outside_include(self, path, name):
        """What is wrong with an include in angle brackets, or None."""
        if STANDARD.match(name):
            return None
        if path.startswith("include/"):
            return f"a public header includes <{name}>; only forebay/ and the standard library"
        if path.endswith(".h") and name in ("fmt/format.h", "nlohmann/json.hpp", "CLI/CLI.hpp"):
            return f"<{name}> costs seconds in every file that includes this header"
        for pattern, places in self.outside:
            if fnmatch.fnmatch(name, pattern):
                if under(path, places):
                    return None
                return f"<{name}> belongs to {' '.join(places)} (tools/includes.txt)"
        return f"<{name}> is in no line of tools/includes.txt"

    def check_words(self, path, code):
        for pattern, places, why in WORDS:
            if not under(path, places):
                for match in pattern.finditer(code):
                    self.say(path, line_of(code, match.start()), f"{match.group(0)}: {why}")
        if path.startswith(("src/", "include/")):
            for match in THROW.finditer(code):
                self.say(path, line_of(code, match.start()), "throw: errors are Status values")

    def check_functions(self, path, code):
        for start, end in functions(code):
            first, last = line_of(code, start), line_of(code, end)
            if last - first + 1 > MAX_FUNCTION:
                self.say(path, first, f"a function of {last - first + 1} lines; at most "
                         f"{MAX_FUNCTION}")

    def check_target(self, path):
        """Every .cc is named by the CMakeLists.txt of its folder or of one above it."""
        folder = os.path.dirname(path)
        while True:
            lists = self.files.get(os.path.join(folder, "CMakeLists.txt"))
            name = os.path.relpath(path, folder or ".")
            if lists and re.search(r"(?<![\w./])" + re.escape(name) + r"(?![\w.])", lists):
                return
            if not folder:
                self.say(path, 1, "belongs to no CMake target")
                return
            folder = os.path.dirname(folder)

    def check_python(self, path, text):
        for node in ast.walk(ast.parse(text, path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = node.end_lineno - node.lineno + 1
                if length > MAX_FUNCTION:
                    self.say(path, node.lineno, f"a function of {length} lines; at most "
                             f"{MAX_FUNCTION}")


NOT_A_FUNCTION = re.compile(r"\b(?:class|struct|union|enum|namespace|extern)\b[^()]*$|=\s*$")


def functions(code):
    """The bodies of the outermost functions of code without comments: (offset of {, of })."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", blank, code, flags=re.M)
    depth, opened, head = 0, None, 0
    for match in re.finditer(r"[{};]", code):
        offset, kind = match.start(), match.group(0)
        if opened is None:
            before = code[head:offset]
            if kind == "{" and ")" in before and not NOT_A_FUNCTION.search(before):
                opened, depth = offset, 1
            head = offset + 1
        elif kind == "{":
            depth += 1
        elif kind == "}":
            depth -= 1
            if depth == 0:
                yield opened, offset
                opened, head = None, offset + 1


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(
        os.path.abspath(__file__)))
    tree = Tree(root)
    found = tree.check()
    print("\n".join(found) or f"layers: {len(tree.files)} files keep the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
