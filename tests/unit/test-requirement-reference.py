# SPDX-License-Identifier: MIT
"""Requirements are spelled as the reference implementation spells them: random ones, both ways."""

import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paths  # noqa: E402


def find_reference():
    """The classes of the reference implementation; where ours has none, another interpreter takes over."""
    try:
        import packaging
        from packaging.requirements import InvalidRequirement, Requirement
        if tuple(map(int, packaging.__version__.split(".")[:2])) < (26, 3):
            raise ImportError("packaging is older than 26.3")
        return Requirement, InvalidRequirement
    except ImportError as error:
        import harness  # needs jsonschema, which the other interpreter lacks
        python = os.path.join(harness.cache_directory(), "ipython9", "bin", "python")
        if sys.executable != python and os.access(python, os.X_OK):
            os.execv(python, [python, __file__])
        print(f"1..0 # SKIP {error}; run tests/setup")
        sys.exit(0)


Requirement, InvalidRequirement = find_reference()

NAMES = ["foo", "Foo_Bar", "a.b-c", "x", "f-", "_x", "9a", "foo_", "foo.-_", "Zope.Interface"]
OPERATORS = ["==", "!=", ">=", "<=", "<", ">", "~=", "===", "=", ""]
VERSIONS = ["1", "1.0", "1.0.0", "1.0.*", "v1.0", "1!2.0", "0!1", "1.0a1", "1.0-alpha.1", "1.0.post", "1.0-1",
            "1.0.dev", "1.0rc01", "1.0+local.01", "1.0+Ub_1", "01.02", "1.0c", "1.0preview2", "1.0.rev3.dev4", "*",
            "1.", "abc", "1.0 ", "1.0.0a", "2.0.0.0", "1_0", "1.0alphabeta", "1.0.r"]
EXTRAS = ["[a]", "[b,a]", "[ b , A ]", "[]", "[a a]", "[a,]", "[a", "[a,a]", "[a.b,a_b]", " [x] "]
OPERANDS = ["python_version", "os.name", "os_name", "sys.platform", "platform.machine",
            "platform_python_implementation", "python_implementation", "extra", "extras", "dependency_groups",
            "'3.9'", '"a\'b"', "'a\"b'", '"Foo_._Bar"', "platform_release", "foo", "implementation_name",
            "python_full_version"]
COMPARISONS = ["==", "<", "in", "not in", "not  in", ">=", "===", "~=", "!=", "<>", "not"]
URLS = ["https://u:p@h/x.whl", "file:///a b", "git+https://h/r@v1", "", "x;y"]


class Writer:
    """Writes requirements that are mostly valid, and spoils some."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return self.random.choice(items)

    def blank(self):
        return self.pick(["", "", " ", "  ", "\t"])

    def atom(self, depth):
        if depth < 4 and self.chance(.3):
            return f"{self.blank()}({self.marker(depth + 1)}){self.blank()}"
        return "".join([self.blank(), self.pick(OPERANDS), self.blank(),
                        self.pick(COMPARISONS[:7] if self.chance(.9) else COMPARISONS), self.pick([" ", ""]),
                        self.pick(OPERANDS), self.blank()])

    def marker(self, depth=0):
        text = self.atom(depth)
        while self.chance(.4):
            text += self.pick([" and ", " or ", "and", "or"]) + self.atom(depth)
        return text

    def specifiers(self):
        comma = f"{self.blank()},{self.blank()}"
        text = comma.join(self.pick(OPERATORS[:8] if self.chance(.97) else OPERATORS) + self.blank()
                          + self.pick(VERSIONS) for _ in range(self.pick([0, 1, 1, 2, 3])))
        if self.chance(.05):
            text += ","
        return f"({self.blank()}{text}{self.blank()})" if self.chance(.2) else text

    def requirement(self):
        text = self.blank() + self.pick(NAMES[:4] if self.chance(.8) else NAMES) + self.blank()
        if self.chance(.4):
            text += self.pick(EXTRAS)
        if self.chance(.2):
            text += "@" + self.blank() + self.pick(URLS) + self.pick(["", " "])
        else:
            text += self.blank() + self.specifiers()
        text += self.blank()
        if self.chance(.4):
            text += ";" + self.marker()
        if self.chance(.1):
            at = self.random.randrange(len(text) + 1)
            text = text[:at] + self.pick("()[];,@ =<>'\"!.-_+*a1\t") + text[at:]
        return text


def reference(text):
    try:
        return str(Requirement(text))
    except InvalidRequirement:
        return "!"


def main():
    writer = Writer(20240101)
    given = [writer.requirement() for _ in range(20000)]
    tool = os.path.join(paths.BUILDDIR, "tests/unit/test-requirement")
    output = subprocess.run([tool, "--filter"], input="".join(f"{g}\n" for g in given), text=True,
                            stdout=subprocess.PIPE, check=True).stdout.split("\n")[:-1]
    expected = [reference(g) for g in given]
    wrong = [(g, e, o) for g, e, o in zip(given, expected, output) if e != o]
    for text, want, got in wrong[:10]:
        print(f"# {text!r}: expected {want!r}, got {got!r}")
    print("1..2")
    print("not ok" if wrong or len(output) != len(given) else "ok", "1 - same spelling, same refusals")
    print("ok" if 4 * expected.count("!") < 3 * len(given) else "not ok", "2 - many of them are valid")


main()
