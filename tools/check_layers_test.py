#!/usr/bin/env python3
"""Plants each violation that check_layers.py knows in a small tree and sees it found."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import check_layers

TOOLS = os.path.dirname(os.path.abspath(__file__))
CLEAN = {
    "tools/layers.txt": "base:\nsys: base\nnet: base sys\nmedia: base\n",
    "include/forebay/status.h": "#include <string>\n#include \"forebay/options.h\"\n",
    "src/base/CMakeLists.txt": "forebay_module(base SOURCES status.cc)\nforebay_test(a_test.cc)\n",
    "src/base/status.cc": "#include \"base/status.h\"\n#include <vector>\nint F() { return 1; }\n",
    "src/base/status.h": "#pragma once\n#include \"forebay/status.h\"\n#include <fmt/core.h>\n",
    "src/base/a_test.cc": "#include <gtest/gtest.h>\n#include <thread>\nstd::thread t;\n",
    "src/net/http.h": "#include \"base/status.h\"\n#include \"net/detail/parse.h\"\n"
                      "// throw and std::mutex in a comment; 'throw'\nconst char* s = \"throw\";\n",
    "src/sys/loop.h": "#include <sys/epoll.h>\n#include <thread>\ninline std::thread t;\n",
    "cli/CMakeLists.txt": "add_executable(forebay main.cc)\n",
    "cli/main.cc": "#include <CLI/CLI.hpp>\n#include \"forebay/status.h\"\n#include \"cli/ls.h\"\n",
    "python/forebay/face.py": "def f():\n    return 1\n",
}


def long_function(lines):
    return "namespace a {\nint F(int x) {\n" + "  if (x) { ++x; }\n" * lines + "  return x;\n}\n}\n"


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        os.makedirs(os.path.join(self.root, "tools"))
        shutil.copy(os.path.join(TOOLS, "includes.txt"), os.path.join(self.root, "tools"))
        for path, text in CLEAN.items():
            self.write(path, text)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def finds(self, path, text, what):
        """Plants text at path: exactly one violation, there, which says what."""
        before = CLEAN.get(path)
        self.write(path, text)
        found = check_layers.Tree(self.root).check()
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path + ":"), found)
        self.assertIn(what, found[0])
        if before is None:
            os.remove(os.path.join(self.root, path))
        else:
            self.write(path, before)

    def test_a_clean_tree_has_no_violation(self):
        self.assertEqual(check_layers.Tree(self.root).check(), [])

    def test_the_table_may_not_name_a_line_below(self):
        self.finds("tools/layers.txt", "base: net\nsys: base\nnet: base sys\nmedia: base\n",
                   "not above")

    def test_a_folder_without_a_line_is_found(self):
        self.finds("src/odd/a.h", "\n", "no line in tools/layers.txt")

    def test_an_include_against_the_table_is_found(self):
        self.finds("src/base/b.h", '#include "net/http.h"\n', "base may not use net")
        self.finds("src/media/b.h", '#include "sys/loop.h"\n', "media may not use sys")
        self.finds("src/sys/b.h", '#  include "nowhere/a.h"\n', "no such folder")

    def test_another_modules_detail_is_found(self):
        self.finds("src/net/b.h", '#include "sys/detail/a.h"\n', "inside sys")
        self.finds("testing/b.h", '#include "sys/detail/a.h"\n', "inside sys")

    def test_the_product_may_not_include_what_is_for_tests(self):
        self.finds("src/net/b.h", '#include "testing/server.h"\n', "for tests")
        self.finds("src/net/b.h", "#include <gtest/gtest.h>\n", "belongs to")

    def test_cli_and_bind_stand_on_the_public_headers(self):
        self.finds("cli/main.cc", '#include "base/status.h"\n', "include/forebay alone")
        self.finds("python/bind/a.h", '#include "engine/engine.h"\n', "include/forebay alone")

    def test_public_headers_include_the_standard_library_alone(self):
        self.finds("include/forebay/status.h", '#include "base/status.h"\n', "public header")
        self.finds("include/forebay/status.h", "#include <fmt/core.h>\n", "public header")

    def test_outside_headers_stay_in_their_folders(self):
        self.finds("src/net/b.h", "#include <libavcodec/avcodec.h>\n", "belongs to src/media")
        self.finds("src/media/b.h", "#include <curl/curl.h>\n", "belongs to src/net")
        self.finds("src/media/b.h", "#include <openssl/evp.h>\n", "belongs to")
        self.finds("src/base/b.h", "#include <sys/socket.h>\n", "belongs to src/sys")
        self.finds("src/net/b.h", "#include <unistd.h>\n", "belongs to src/sys")
        self.finds("src/net/b.h", "#include <boost/asio.hpp>\n", "no line")

    def test_heavy_headers_stay_out_of_headers(self):
        self.finds("src/net/b.h", "#include <nlohmann/json.hpp>\n", "costs seconds")

    def test_a_source_without_a_target_is_found(self):
        self.finds("src/base/bytes.cc", "\n", "no CMake target")
        self.finds("src/base/tatus.cc", "\n", "no CMake target")

    def test_threads_and_unannotated_mutexes_are_found(self):
        self.finds("src/net/b.h", "std::mutex m;\n", "base/mutex.h")
        self.finds("src/net/b.h", "std::thread t;\n", "sys/ alone")
        self.finds("src/net/b.h", "auto f = std::async(g);\n", "sys/ alone")

    def test_throw_is_found(self):
        self.finds("src/net/b.h", "inline void F() { throw 1; }\n", "Status")

    def test_unfinished_work_is_found(self):
        self.finds("src/net/b.h", "// TO" + "DO: the rest\n", "unfinished")
        self.finds("tools/a.sh", "# FIX" + "ME\n", "unfinished")

    def test_skipped_tests_are_found(self):
        self.finds("src/base/a_test.cc", "TEST(A, b) { GTEST_" + "SKIP(); }\n", "skipped")
        self.finds("src/base/a_test.cc", "TEST(A, DIS" + "ABLED_b) {}\n", "skipped")
        self.finds("python/tests/test_a.py", "import pytest\n@pytest.mark.sk" + "ip\n"
                   "def f(): pass\n", "skipped")

    def test_sizes_are_held(self):
        self.finds("src/net/b.h", "int a;\n" * 801, "801 lines")
        self.finds("src/net/b.h", "// " + "x" * 98 + "\n", "101 columns")
        self.finds("src/base/status.cc", long_function(68), "a function of 71 lines")
        self.finds("python/forebay/face.py", "def f():\n" + "    f()\n" * 70, "of 71 lines")

    def test_a_function_of_just_the_limit_is_accepted(self):
        self.write("src/base/status.cc", long_function(67))
        self.assertEqual(check_layers.Tree(self.root).check(), [])

    def test_the_program_exits_by_what_it_found(self):
        program = [sys.executable, os.path.join(TOOLS, "check_layers.py"), self.root]
        self.assertEqual(subprocess.run(program, capture_output=True, timeout=60).returncode, 0)
        self.write("src/net/b.h", '#include "media/a.h"\n')
        run = subprocess.run(program, capture_output=True, timeout=60, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("src/net/b.h:1: net may not use media", run.stdout)


if __name__ == "__main__":
    unittest.main()
