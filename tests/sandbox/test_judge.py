"""Solutions judged by tests in another jail: what tests can do with a solution, and what they say of it."""

from __future__ import annotations

import textwrap

import pytest

from surefoot.errors import SandboxError
from surefoot.protocols import Call, Limits, Sandbox
from surefoot.protocols import Sandbox as SandboxProtocol


def passed(sandbox: Sandbox, code: str, tests: str, entry: str | None = None) -> list[bool]:
    checks, execution = sandbox.judge(textwrap.dedent(code), textwrap.dedent(tests), entry=entry)
    assert execution.outcome != "sandbox_error", execution
    failed = [check.evidence for check in checks if not check.passed]
    print("\n".join(failed), execution.stderr)
    return [check.passed for check in checks]


def test_it_is_the_protocols_sandbox(sandbox: Sandbox) -> None:
    assert isinstance(sandbox, SandboxProtocol)


def test_each_assert_is_a_check_with_evidence(sandbox: Sandbox) -> None:
    tests = "assert f(2) == 4\nassert f(3) == 10, 'square of three'\nassert f([1]) == 1\nassert f(4) == 16"
    checks, _ = sandbox.judge("def f(x): return x * x", tests)
    assert [check.passed for check in checks] == [True, False, False, True]
    assert checks[0].name == "assert f(2) == 4" and not checks[0].evidence
    assert "square of three" in checks[1].evidence and "f(3) -> 9" in checks[1].evidence
    assert "TypeError" in checks[2].evidence


def test_asserts_inside_check_and_loops(sandbox: Sandbox) -> None:
    tests = """
        def check(candidate):
            for x in range(5):
                assert candidate(x) == x * x
            if True:
                assert candidate(0) == 0
            assert candidate(3) == 10
    """
    assert passed(sandbox, "def f(x): return x * x", tests, "f") == [True, True, False]


def test_a_failing_check_in_a_loop_fails_once(sandbox: Sandbox) -> None:
    checks, _ = sandbox.judge("def f(x): return min(x, 2)", "for x in range(5):\n    assert f(x) == x")
    assert [check.passed for check in checks] == [False] and "f(3) -> 2" in checks[0].evidence


def test_data_of_every_kind_crosses(sandbox: Sandbox) -> None:
    tests = """
        import math
        for value in [0, -1, 10**400, 1.5, math.inf, 2j, "", "é\\ud800", b"\\x00", None, True, (1, [2]), {1, 2},
                      frozenset({3}), {(1, 2): [3, {"a": None}]}, [], {}, set(), range(3)]:
            assert f(value) == value and type(f(value)) is type(value), value
        assert math.isnan(f(math.nan))
    """
    assert passed(sandbox, "def f(x): return x", tests) == [True, True]


def test_mutation_in_place_is_seen(sandbox: Sandbox) -> None:
    code = """
        def sort(xs): xs.sort()
        def fill(d, s, b): d["new"] = [1]; s.add(9); b.append(7)
        def deep(xs): xs[0].append(5); return xs
        def fails(xs): xs.append(1); raise ValueError("after the change")
    """
    tests = """
        xs = [3, 1, 2]; alias = xs
        assert sort(xs) is None and alias == [1, 2, 3]
        d, s, b = {}, {1}, bytearray(b"a")
        fill(d, s, b)
        assert (d, s, b) == ({"new": [1]}, {1, 9}, bytearray(b"a\\x07"))
        inner = [1]; outer = [inner]
        assert deep(outer) is outer and inner == [1, 5]
        ys = []
        try:
            fails(ys)
        except ValueError as error:
            message = str(error)
        assert ys == [1] and message == "after the change"
    """
    assert passed(sandbox, code, tests) == [True] * 4


def test_classes_and_their_objects(sandbox: Sandbox) -> None:
    code = """
        class Stack:
            limit = 3
            def __init__(self, *items): self.items = list(items)
            def push(self, x):
                if len(self.items) >= self.limit: raise OverflowError("full")
                self.items.append(x); return self
            def pop(self): return self.items.pop()
            def __len__(self): return len(self.items)
            def __getitem__(self, i): return self.items[i]
            def __contains__(self, x): return x in self.items
            def __iter__(self): return iter(self.items)
            def __repr__(self): return f"Stack({self.items})"
            def __add__(self, other): return Stack(*self.items, *other.items)
            @classmethod
            def of(cls, n): return cls(*range(n))
    """
    tests = """
        s = Stack(1)
        s.push(2).push(3)
        assert len(s) == 3 and s[0] == 1 and 2 in s and 9 not in s and list(s) == [1, 2, 3]
        assert repr(s) == "Stack([1, 2, 3])" and f"{s}" == "Stack([1, 2, 3])"
        try:
            s.push(4)
            raised = None
        except OverflowError as error:
            raised = str(error)
        assert raised == "full"
        assert s.pop() == 3 and s.items == [1, 2]
        s.items = [7]
        assert s[0] == 7
        assert list(s + Stack(8)) == [7, 8]
        assert len(Stack.of(2)) == 2 and Stack.limit == 3
    """
    assert passed(sandbox, code, tests) == [True] * 7


def test_leetcode_style(sandbox: Sandbox) -> None:
    code = """
        class Solution:
            def twoSum(self, nums, target):
                seen = {}
                for i, n in enumerate(nums):
                    if target - n in seen: return [seen[target - n], i]
                    seen[n] = i
    """
    assert passed(sandbox, code, "assert Solution().twoSum([2, 7, 11], 9) == [0, 1]") == [True]
    results, _ = sandbox.call(textwrap.dedent(code), [Call("twoSum", ([3, 3], 6)), Call("Solution.twoSum", ([1], 1))])
    assert [result.value for result in results] == [[0, 1], None]


def test_generators_and_callbacks(sandbox: Sandbox) -> None:
    code = """
        def count(n):
            while True:
                yield n
                n += 1
        def apply(f, xs): return [f(x) for x in xs]
        def adder(n): return lambda x: x + n
        def total(xs): return sum(xs)
        def twice(f): return lambda *a: f(f(*a))
    """
    tests = """
        from itertools import islice
        assert list(islice(count(5), 3)) == [5, 6, 7]
        assert next(count(1)) == 1
        assert apply(lambda x: x * 2, [1, 2]) == [2, 4]
        assert adder(3)(4) == 7
        assert total(x * x for x in range(4)) == 14
        assert total(iter([1, 2])) == 3
        assert apply(adder(1), [1]) == [2]
        assert twice(lambda x: x + 3)(1) == 7
        seen = []
        apply(seen.append, [1, 2])
        assert seen == [1, 2]
        def fail(x): raise KeyError(x)
        try:
            apply(fail, [1])
            raised = False
        except RuntimeError as error:
            raised = "KeyError" in str(error)
        assert raised
    """
    assert passed(sandbox, code, tests) == [True] * 10


def test_exceptions_come_by_name_and_message(sandbox: Sandbox) -> None:
    code = """
        class Custom(LookupError): pass
        def f(kind):
            if kind == "custom": raise Custom("mine")
            if kind == "key": return {}["k"]
            if kind == "unicode": return b"\\xff".decode()
            if kind == "stop": raise StopIteration
            if kind == "exit": raise SystemExit(3)
            raise Exception("plain")
    """
    tests = """
        def raised(kind):
            try:
                f(kind)
            except Exception as error:
                return error
        assert isinstance(raised("custom"), LookupError) and type(raised("custom")).__name__ == "Custom"
        assert isinstance(raised("key"), KeyError)
        assert isinstance(raised("unicode"), ValueError)
        assert "plain" in str(raised("other"))
        assert type(raised("exit")).__name__ == "SystemExit"
    """
    assert passed(sandbox, code, tests) == [True] * 5


def test_objects_prove_nothing_by_their_own_word(sandbox: Sandbox) -> None:
    code = "class P:\n    def __eq__(self, o): return True\n    def __bool__(self): return True\ndef f(): return P()"
    tests = "assert f() == P()\nassert f()\nassert f() == 5\nassert f() != 5"
    assert passed(sandbox, code, tests) == [False, False, False, True]


def test_names_of_the_solution_and_names_of_python(sandbox: Sandbox) -> None:
    code = "LIMIT = 5\ndef len(x): return 0\ndef helper(x): return x + LIMIT\ndef f(x): return helper(x)"
    assert passed(sandbox, code, "assert LIMIT == 5 and f(1) == helper(1) == 6\nassert len([1]) == 1") == [True, True]


def test_matches_and_arrays(sandbox: Sandbox) -> None:
    code = "import re\ndef f(s): return re.match(r'(a+)(?P<b>b)?', s)"
    tests = (
        "m = f('aab')\nassert m and m.group(1) == 'aa' and m['b'] == 'b' and m.span() == (0, 3)\nassert f('x') is None"
    )
    assert passed(sandbox, code, tests) == [True, True]
    checks, execution = sandbox.judge(
        "import numpy as np\ndef f(n): return np.arange(n) * 2.0",
        "import numpy as np\nassert (f(3) == np.array([0, 2, 4])).all()\nassert f(2).dtype == float",
        image="python-scientific",
    )
    assert [check.passed for check in checks] == [True, True], (checks, execution)


def test_a_solution_that_cannot_be_loaded(sandbox: Sandbox) -> None:
    checks, execution = sandbox.judge("import no_such_module", "assert f(1) == 1")
    assert not any(check.passed for check in checks)
    assert execution.outcome == "failed" and "no_such_module" in execution.stderr


def test_a_solution_that_hangs_fails_what_is_left(sandbox: Sandbox) -> None:
    code = "def f(x):\n    while x: pass\n    return 0"
    checks, execution = sandbox.judge(
        code, "assert f(0) == 0\nassert f(1) == 0\nassert f(0) == 0", limits=Limits(cpu_seconds=0.3)
    )
    assert [check.passed for check in checks][:2] == [True, False] and not checks[-1].passed
    assert execution.outcome == "timeout"


def test_broken_tests_are_not_passed(sandbox: Sandbox) -> None:
    for tests in ("assert (", "import nothing_like_it\nassert True", "assert undefined_name == 1"):
        checks, _ = sandbox.judge("def f(x): return 1", tests)
        assert checks and not all(check.passed for check in checks)


def test_tests_that_define_and_call_their_check(sandbox: Sandbox) -> None:
    tests = "def check(candidate):\n    assert candidate(1) == 2\n\ndef test_check():\n    check(f)\n\ntest_check()\n"
    assert passed(sandbox, "def f(x): return x + 1", tests) == [True]
    assert passed(sandbox, "def f(x): return x + 1", tests, "f") == [True]


# ------------------------------------------------------------------------------------------------------------- calls


def test_calls(sandbox: Sandbox) -> None:
    code = (
        "import sys\ndef f(x, k=1): x.append(k); return x\ndef g(): return object()\ndef h(): raise ValueError('no')\n"
    )
    calls = [Call("f", ([1],), {"k": 2}), Call("g"), Call("h"), Call("nothing"), Call("f", ([],))]
    results, execution = sandbox.call(code, calls)
    assert results[0].value == [1, 2] and results[0].args_after == ([1, 2],)
    assert "cannot cross" in str(results[1].error)
    assert results[2].error == "ValueError: no" and str(results[3].error).startswith("NameError")
    assert results[4].value == [1] and execution.outcome == "ok"
    assert calls[0].args == ([1],), "the caller's own data is not touched"


def test_a_stop_of_iteration_is_an_error_like_any_other(sandbox: Sandbox) -> None:
    code = "def f(x):\n    x.append(1)\n    return next(iter([]))\ndef g(): return 5"
    results, execution = sandbox.call(code, [Call("f", ([],)), Call("g")])
    assert str(results[0].error).startswith("StopIteration") and results[0].args_after == ([1],)
    assert results[1].value == 5 and execution.outcome == "ok"
    tests = "x = []\ntry:\n    f(x)\nexcept StopIteration:\n    pass\nassert x == [1]\nassert g() == 5"
    assert passed(sandbox, code, tests) == [True, True]


def test_calls_end_with_the_run(sandbox: Sandbox) -> None:
    code = "import os\ndef f(x):\n    if x == 2: os._exit(0)\n    return x"
    results, execution = sandbox.call(code, [Call("f", (n,)) for n in range(5)])
    assert [result.value for result in results] == [0, 1] and execution.outcome == "ok"
    results, execution = sandbox.call("x = 1 / 0", [Call("f")])
    assert results == () and execution.outcome == "failed"


def test_a_forged_stream_of_results_is_cut(sandbox: Sandbox) -> None:
    code = "import os\nos.write(3, b'nonsense\\n')\ndef f(): return 1"
    assert sandbox.call(code, [Call("f")])[0] == ()
    code = "import os\nfor _ in range(9): os.write(3, b'{\"r\": 7}\\n')\ndef f(): return 1"
    assert len(sandbox.call(code, [Call("f"), Call("f")])[0]) == 2


def test_arguments_must_be_plain(namespaces: Sandbox) -> None:
    with pytest.raises(SandboxError, match="call of f"):
        namespaces.call("def f(x): return x", [Call("f", (object(),))])
