# ruff: noqa: E501
"""The tasks that the corpus answers: prompts, hidden tests, and what each is graded by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from surefoot.types import Task


def _code(name: str, says: str, reference: Callable[..., Any], visible: Sequence[Any], hidden: Sequence[Any]) -> Task:
    """A function to write; each input is an argument, or a tuple of several. Expected values come from `reference`."""
    cases = []
    for inputs, is_hidden in ((visible, False), (hidden, True)):
        for given in inputs:
            args = list(given) if isinstance(given, tuple) else [given]
            cases.append({"args": args, "expected": reference(*args), "hidden": is_hidden})
    shown = "\n".join(
        f"{name}({', '.join(map(repr, c['args']))}) == {c['expected']!r}" for c in cases if not c["hidden"]
    )
    prompt = f"Write a Python function `{name}` that {says}. For example:\n{shown}\nReply with the code only."
    return Task(name, "code", ({"role": "user", "content": prompt},), {"function": name, "cases": cases})


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def _fib(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def _median(xs: list[int]) -> float:
    s, n = sorted(xs), len(xs)
    return float(s[n // 2]) if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


def _merge(xs: list[list[int]]) -> list[list[int]]:
    out: list[list[int]] = []
    for a, b in sorted(xs):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


def _balanced(s: str) -> bool:
    pairs, stack = {")": "(", "]": "[", "}": "{"}, []
    for c in s:
        if c in "([{":
            stack.append(c)
        elif c in pairs and (not stack or stack.pop() != pairs[c]):
            return False
    return not stack


def _to_int(s: str) -> int:
    try:
        return int(s)
    except ValueError:
        return 0


def _first_prime_after(n: int) -> int:
    n += 1
    while not _is_prime(n):
        n += 1
    return n


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ROMAN = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


def _roman(n: int) -> str:
    out = ""
    for value, letters in _ROMAN:
        while n >= value:
            out, n = out + letters, n - value
    return out


CODE = [
    _code("is_leap", "tells whether a year is a leap year of the Gregorian calendar",
          lambda y: y % 4 == 0 and (y % 100 != 0 or y % 400 == 0), [2000, 1900], [2024, 2023, 1600, 2100, 4, 1996, 400]),
    _code("fib", "gives the n-th Fibonacci number, with fib(0) == 0 and fib(1) == 1",
          _fib, [5, 10], [0, 1, 2, 12, 20, 30, 15]),
    _code("count_vowels", "counts the vowels (a, e, i, o, u, in either case) of a string",
          lambda s: sum(c in "aeiouAEIOU" for c in s), ["hello", "sky"], ["", "AEIOU", "queue", "rhythm", "Banana split", "x"]),
    _code("median", "gives the median of a non-empty list of integers as a float",
          _median, [[3, 1, 2], [4, 1, 3, 2]], [[5], [7, 7], [9, 1, 5, 3, 8], [10, -10], [0, 0, 0, 6], [2, 4, 6, 8, 100]]),
    _code("merge_intervals", "merges overlapping closed intervals and returns them sorted, as lists",
          _merge, [[[1, 3], [2, 6], [8, 10]]], [[], [[1, 4], [4, 5]], [[5, 6], [1, 2]], [[1, 10], [2, 3]], [[0, 0], [0, 1], [3, 4]]]),
    _code("balanced", "tells whether the brackets ()[]{} of a string are balanced",
          _balanced, ["(a)", "(]"], ["", "([]{})", "([)]", "((", "}", "x[y{z}]"]),
    _code("to_int", "turns a string into an int, or gives 0 if it is not one",
          _to_int, ["12", "abc"], ["-7", "", "3.5", " 8 ", "1e3", "0012"]),
    _code("first_prime_after", "gives the smallest prime greater than n",
          _first_prime_after, [10, 2], [0, 1, 13, 24, 100, 7919]),
    _code("digit_name", "gives the English name of a digit 0 to 9",
          lambda d: DIGITS[d], [1, 7], [0, 2, 3, 4, 5, 6, 8, 9]),
    _code("days_in_month", "gives the number of days of a month 1 to 12 in a year that is not a leap year",
          lambda m: MONTHS[m - 1], [1, 2], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    _code("roman", "writes a number from 1 to 39 as a Roman numeral",
          _roman, [4, 10], [1, 2, 9, 14, 39, 27, 19]),
    _code("fizzbuzz", "gives 'Fizz' for multiples of 3, 'Buzz' for multiples of 5, 'FizzBuzz' for both, else the number as a string",
          lambda n: "FizzBuzz" if n % 15 == 0 else "Fizz" if n % 3 == 0 else "Buzz" if n % 5 == 0 else str(n),
          [3, 5, 7], [15, 1, 9, 20, 30, 98]),
    _code("safe_div", "divides a by b, or gives None where b is 0",
          lambda a, b: None if b == 0 else a / b, [(6, 3), (1, 0)], [(0, 5), (7, 2), (-9, 3), (0, 0), (5, -1)]),
    _code("grade", "gives 'A' from 90 points, 'B' from 80, 'C' from 70, 'D' from 60, else 'F'",
          lambda p: next(letter for m, letter in ((90, "A"), (80, "B"), (70, "C"), (60, "D"), (-1, "F")) if p >= m),
          [95, 80], [89, 90, 70, 69, 60, 59, 0, 100]),
    _code("parse_env", "turns lines KEY=VALUE into a dict, skipping blank lines and lines that start with #",
          lambda text: dict(line.split("=", 1) for line in text.splitlines() if line.strip() and not line.startswith("#")),
          ["A=1\nB=2"], ["", "# c\nX=y", "K=a=b", "\n\nQ=\n", "PATH=/bin\nHOME=/root"]),
    _code("gcd", "gives the greatest common divisor of two positive integers",
          lambda a, b: next(d for d in range(min(a, b), 0, -1) if a % d == 0 and b % d == 0),
          [(12, 18), (7, 3)], [(100, 75), (1, 1), (17, 51), (270, 192), (8, 9)]),
    Task("sum_lines", "code",
         ({"role": "user", "content": "Write a Python program that reads one integer a line from standard input and "
           "prints their sum. For example, for the input 1, 2, 3 it prints 6. Reply with the code only."},),
         {"io": [{"input": "1\n2\n3\n", "output": "6\n", "hidden": False}, {"input": "", "output": "0\n"},
                 {"input": "10\n-4\n", "output": "6\n"}, {"input": "7\n", "output": "7\n"},
                 {"input": "100\n200\n300\n400\n", "output": "1000\n"}]}),
]  # fmt: skip


def _answer(name: str, domain: str, prompt: str, answer: object, **checks: Any) -> Task:
    return Task(name, domain, ({"role": "user", "content": prompt},), {"answer": answer, **checks})


_BOX = " Put the final answer in \\boxed{}."
MATHS = [
    _answer("product", "maths", f"What is 12 times 13?{_BOX}", "156"),
    _answer("half", "maths", f"What is the probability that a fair coin lands heads?{_BOX}", "\\frac{1}{2}"),
    _answer("roots", "maths", f"Solve x^2 - 5x + 6 = 0 for x.{_BOX}", "\\{2, 3\\}"),
    _answer("integral", "maths", f"Compute the integral of 3x^2 from 0 to 2.{_BOX}", "8"),
    _answer("surd", "maths", f"Simplify the square root of 72.{_BOX}", "6\\sqrt{2}"),
    _answer("primes", "maths", f"How many primes are there below 30?{_BOX}", "10"),
    _answer("factor", "maths", f"Expand (x+1)(x-3).{_BOX}", "x^2-2x-3"),
    _answer("sum100", "maths", f"What is the sum of the integers from 1 to 100?{_BOX}", "5050"),
    _answer("winkel", "maths", "Wie groß ist die Winkelsumme eines Dreiecks in Grad? Schreibe die Antwort in \\boxed{}.", "180"),
]  # fmt: skip
NUMBERS = [
    _answer("apples", "number", "Tom has 17 apples, buys 8 and gives away 5. How many has he left? End with the final answer.", "20"),
    _answer("speed", "number", "A train goes 150 km in 2 hours. What is its speed in km/h? End with the final answer.", "75"),
    _answer("change", "number", "A pen costs $1.25. What do 6 pens cost, in dollars? End with the final answer.", "7.5"),
    _answer("students", "number", "There are 4 classes of 23 pupils. How many pupils are there? End with the final answer.", "92"),
]  # fmt: skip


def _choice(name: str, question: str, options: Sequence[str], answer: str) -> Task:
    shown = "\n".join(f"({letter}) {text}" for letter, text in zip("ABCDE", options, strict=False))
    prompt = f"{question}\n{shown}\nThink if you like, and give the letter of the right option on the last line."
    return _answer(name, "choice", prompt, answer, choices=list(options))


CHOICE = [
    _choice("capital", "What is the capital of France?", ["Lyon", "Paris", "Nice", "Lille"], "B"),
    _choice("planet", "Which planet is the largest?", ["Earth", "Mars", "Jupiter", "Venus"], "C"),
    _choice("metal", "Which of these is liquid at room temperature?", ["Mercury", "Iron", "Gold", "Copper"], "A"),
    _choice("leaves", "What do plants take in for photosynthesis?", ["Oxygen", "Nitrogen", "Helium", "Carbon dioxide"], "D"),
    _choice("truth", "The Sun is a star. True or false?", ["True", "False"], "A"),
]  # fmt: skip


def _asked(name: str, prompt: str, constraints: Sequence[dict[str, Any]], **content: Any) -> Task:
    checks = {"content": {"least_words": 3, **content}}
    return Task(name, "constraints", ({"role": "user", "content": prompt},), checks, tuple(constraints))


CONSTRAINTS = [
    _asked("tea", "Describe how to make tea in at least 20 words. Use the word tea at least 2 times.",
           [{"kind": "words_at_least", "n": 20}, {"kind": "keyword", "word": "tea", "n": 2}], mentions=["tea"], least_words=8),
    _asked("rain", "Write about rain in exactly 3 sentences. Do not use any commas.",
           [{"kind": "sentences_exactly", "n": 3}, {"kind": "no_commas"}], mentions=["rain"], least_words=6),
    _asked("colours", "Name 4 colours on one line, separated by commas, in alphabetical order.",
           [{"kind": "listed", "n": 4}, {"kind": "alphabetical"}]),
    _asked("garden", "Give 3 tips for a garden as bullet points and nothing else.",
           [{"kind": "only_bullets", "n": 3}], mentions=["garden", "plant", "plants", "soil", "water", "weed", "weeds"]),
    _asked("quiet", "Write one sentence about a library in lowercase letters only. Use at least 8 words.",
           [{"kind": "lowercase"}, {"kind": "words_at_least", "n": 8}, {"kind": "sentences_exactly", "n": 1}], mentions=["library"]),
    _asked("letter", "Write a short letter to a neighbour with at least 2 placeholders in square brackets and a postscript that starts with P.S.",
           [{"kind": "placeholders", "n": 2}, {"kind": "postscript"}], mentions=["neighbour", "neighbor", "dear"], least_words=8),
    _asked("person", "Reply with JSON only: an object with the keys name and city.",
           [{"kind": "json", "keys": ["name", "city"]}]),
]  # fmt: skip

TASKS = {task.id: task for task in [*CODE, *MATHS, *NUMBERS, *CHOICE, *CONSTRAINTS]}
