"""Right solutions of HumanEval problems, written otherwise than the canonical ones. Read as text, never imported.

Each relies on what its problem promises and goes wrong, or runs for ever, outside of it: they show whether generated
tests hold invalid inputs against right solutions. Two functions of one name are two solutions.
"""
# ruff: noqa: F811, E741, RET503


def truncate_number(number):
    return number - int(number)


def separate_paren_groups(s):
    out, depth, now = ([], 0, "")
    for c in s:
        if c == " ":
            continue
        now += c
        depth += 1 if c == "(" else -1
        if depth == 0:
            out.append(now)
            now = ""
    assert depth == 0
    return out


def below_zero(operations):
    from itertools import accumulate

    return any(b < 0 for b in accumulate(operations))


def mean_absolute_deviation(numbers):
    from statistics import fmean

    m = fmean(numbers)
    return fmean([abs(x - m) for x in numbers])


def greatest_common_divisor(a, b):
    for d in range(min(a, b), 0, -1):
        if a % d == 0 and b % d == 0:
            return d


def largest_divisor(n):
    d = 2
    while d <= n:
        if n % d == 0:
            return n // d
        d += 1
    raise ValueError(n)


def factorize(n):
    out, d = ([], 2)
    while n > 1:
        while n % d == 0:
            out.append(d)
            n //= d
        d += 1
    return out


def max_element(l):
    m = l[0]
    for x in l[1:]:
        m = max(m, x)
    return m


def rescale_to_unit(numbers):
    low = min(numbers)
    span = max(numbers) - low
    return [(x - low) / span for x in numbers]


def fib(n):
    a, b = (0, 1)
    for _ in range(n):
        a, b = (b, a + b)
    return a


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


def sum_to_n(n):
    total = 0
    for i in range(1, n + 1):
        total += i
    return total


def correct_bracketing(brackets):
    while "()" in brackets:
        brackets = brackets.replace("()", "")
    return brackets == ""


def correct_bracketing(brackets):
    while "<>" in brackets:
        brackets = brackets.replace("<>", "")
    return brackets == ""


def modp(n, p):
    r = 1 % p
    for _ in range(n):
        r = r * 2 % p
    return r


def median(l):
    s = sorted(l)
    n = len(s)
    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


def triangle_area(a, h):
    return 0.5 * a * h


def make_a_pile(n):
    out = [n]
    while len(out) < n:
        out.append(out[-1] + 2)
    return out


def iscube(a):
    r = round(abs(a) ** (1 / 3))
    return any((r + d) ** 3 == abs(a) for d in (-1, 0, 1))


def decimal_to_binary(decimal):
    return f"db{decimal:b}db"


def digits(n):
    product, odd = (1, False)
    while n:
        n, d = divmod(n, 10)
        if d % 2:
            product, odd = (product * d, True)
    return product if odd else 0


def right_angle_triangle(a, b, c):
    x, y, z = sorted((a, b, c))
    return x * x + y * y == z * z


def even_odd_palindrome(n):
    hits = [i for i in range(1, n + 1) if str(i) == str(i)[::-1]]
    odd = sum(i % 2 for i in hits)
    return (len(hits) - odd, odd)
