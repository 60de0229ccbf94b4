"""Problems on conditions: one of several answers."""

from __future__ import annotations

from surefoot.domains.code_tasks.family import Family

FAMILIES = (
    Family(
        "label(n)",
        (
            "returns '{a}' if n is greater than {k}, else '{b}'",
            "returns '{a}' for numbers above {k} and '{b}' for all others",
        ),
        "return '{a}' if n > {k} else '{b}'",
        ("int",),
        params={"a,b": (("big", "small"), ("high", "low"), ("yes", "no")), "k": (0, 5, 10, 20)},
    ),
    Family(
        "parity(n)",
        ("returns '{a}' if n is even and '{b}' if it is odd",),
        "return '{a}' if n % 2 == 0 else '{b}'",
        ("int",),
        params={"a,b": (("even", "odd"), ("left", "right"), ("red", "black"))},
    ),
    Family(
        "sign(n)",
        ("returns {a} if n is positive, {b} if n is negative, and {c} if n is zero",),
        "if n > 0:\n    return {a}\nreturn {b} if n < 0 else {c}",
        ("int",),
        level=1,
        params={"a,b,c": (("1", "-1", "0"), ("'plus'", "'minus'", "'zero'"), ("'up'", "'down'", "'flat'"))},
    ),
    Family(
        "ticket_price(age)",
        (
            "returns {a} if the age is under {limit}, otherwise {b}",
            "returns the price: {a} below the age of {limit}, else {b}",
        ),
        "return {a} if age < {limit} else {b}",
        ("natural",),
        params={"a,b": ((5, 10), (0, 8), (7, 12)), "limit": (6, 12, 18)},
    ),
    Family(
        "grade(score)",
        ("returns 'A' for a score of {high} or more, 'B' for {low} or more, and 'C' below that",),
        "if score >= {high}:\n    return 'A'\nreturn 'B' if score >= {low} else 'C'",
        ("natural",),
        level=1,
        params={"high": (20, 25, 30), "low": (8, 10, 15)},
    ),
    Family(
        "fizz(n)",
        ("returns '{word}' if n is divisible by {k}, else n itself",),
        "return '{word}' if n % {k} == 0 else n",
        ("int",),
        level=1,
        params={"word": ("fizz", "buzz", "pop"), "k": (3, 4, 5)},
    ),
    Family(
        "both_{kind}(a, b)",
        ("returns True if both numbers are {kind}", "checks whether a and b are both {kind}"),
        "return a {test} and b {test}",
        ("int", "int2"),
        level=1,
        params={"kind,test": (("positive", "> 0"), ("even", "% 2 == 0"), ("negative", "< 0"))},
    ),
    Family(
        "either_{kind}(a, b)",
        ("returns True if at least one of the two numbers is {kind}", "checks whether a or b (or both) is {kind}"),
        "return a {test} or b {test}",
        ("int", "int2"),
        level=1,
        params={"kind,test": (("positive", "> 0"), ("even", "% 2 == 0"), ("negative", "< 0"))},
    ),
    Family(
        "sum_is_{kind}(a, b)",
        ("returns True if the sum of a and b is {words}",),
        "return a + b {test}",
        ("int", "int2"),
        level=1,
        params={
            "kind,words,test": (
                ("ten", "10 or more", ">= 10"),
                ("low", "below 10", "< 10"),
                ("high", "above 20", "> 20"),
            )
        },
    ),
    Family(
        "exactly_one(a, b)",
        ("returns True if exactly one of the two truth values is True",),
        "return a != b",
        ("bool", "bool2"),
        level=1,
    ),
    Family(
        "choose(flag, a, b)",
        ("returns a if flag is True, else b",),
        "return a if flag else b",
        ("bool", "int", "int2"),
    ),
    Family(
        "same_length(a, b)",
        ("returns True if the two strings have the same length",),
        "return len(a) == len(b)",
        ("word", "word2"),
    ),
    Family(
        "longer_text(a, b)",
        ("returns the longer of two strings, a if they are equally long",),
        "return a if len(a) >= len(b) else b",
        ("word", "word2"),
        level=1,
    ),
    Family(
        "greeting(name)",
        (
            "returns '{a}, ' followed by the name and '{end}'",
            "greets by name, starting with '{a}, ' and ending with '{end}'",
        ),
        "return '{a}, ' + name + '{end}'",
        ("word",),
        params={"a": ("Hello", "Hi", "Dear"), "end": ("!", ".")},
    ),
    Family(
        "or_default(text)",
        ("returns the string, or '{d}' if it is empty", "returns '{d}' in place of an empty string, else the string"),
        "return text or '{d}'",
        ("word",),
        level=1,
        params={"d": ("none", "unknown", "?")},
    ),
    Family(
        "leap_year(year)",
        ("returns True if the year is divisible by 4 but not by 100, or divisible by 400",),
        "return year % 4 == 0 and year % 100 != 0 or year % 400 == 0",
        ("year",),
        level=2,
    ),
    Family(
        "fizz_buzz(n)",
        ("returns '{a}' if n is divisible by {j}, '{b}' if by {k}, '{a}{b}' if by both, else n",),
        "if n % {both} == 0:\n    return '{a}{b}'\n"
        "if n % {j} == 0:\n    return '{a}'\n"
        "return '{b}' if n % {k} == 0 else n",
        ("fifteens",),
        level=2,
        params={"a,b": (("fizz", "buzz"), ("ping", "pong")), "j,k,both": ((3, 5, 15), (2, 3, 6), (2, 5, 10))},
    ),
)
