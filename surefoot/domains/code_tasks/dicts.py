"""Problems on dictionaries from strings to integers."""

from __future__ import annotations

from surefoot.domains.code_tasks.family import Family

FAMILIES = (
    Family(
        "get_value(data)",
        (
            "returns the value of the key '{key}', or {default} if it is missing",
            "looks up '{key}' with {default} as the default",
        ),
        "return data.get('{key}', {default})",
        ("dict",),
        params={"key": ("red", "total", "x"), "default": (0, -1, "None")},
    ),
    Family(
        "has_key(data)",
        ("returns True if the dictionary has the key '{key}'", "checks whether '{key}' is a key of a dictionary"),
        "return '{key}' in data",
        ("dict",),
        params={"key": ("red", "blue", "name", "id")},
    ),
    Family(
        "sum_values(data)",
        ("returns the sum of all values of a dictionary", "adds up the values of a dictionary"),
        "return sum(data.values())",
        ("dict",),
    ),
    Family(
        "sorted_keys(data)",
        ("returns the keys of a dictionary as a sorted list",),
        "return sorted(data)",
        ("dict",),
    ),
    Family(
        "sorted_values(data)",
        ("returns the values of a dictionary as a sorted list",),
        "return sorted(data.values())",
        ("dict",),
    ),
    Family(
        "count_values(data)",
        ("returns how many values of a dictionary are greater than {k}",),
        "return sum(1 for v in data.values() if v > {k})",
        ("dict",),
        level=1,
        params={"k": (0, 5, 10, 20)},
    ),
    Family(
        "keep_values(data)",
        (
            "returns a dictionary of the items whose value is greater than {k}",
            "keeps only the items with values above {k}",
        ),
        "return {{key: v for key, v in data.items() if v > {k}}}",
        ("dict",),
        level=2,
        params={"k": (0, 5, 10, 20)},
    ),
    Family(
        "scale_values(data)",
        ("returns a dictionary with every value multiplied by {k}",),
        "return {{key: v * {k} for key, v in data.items()}}",
        ("dict",),
        level=1,
        params={"k": (2, 3, 5, 10)},
    ),
    Family(
        "key_of_largest(data)",
        ("returns the key with the largest value of a non-empty dictionary, the first one of equals",),
        "return max(data, key=data.get)",
        ("dict+",),
        level=2,
    ),
    Family(
        "without_key(data)",
        ("returns a copy of the dictionary without the key '{key}'",),
        "return {{key: v for key, v in data.items() if key != '{key}'}}",
        ("dict",),
        level=1,
        params={"key": ("red", "blue", "id")},
    ),
    Family(
        "with_item(data)",
        ("returns a copy of the dictionary in which the key '{key}' has the value {v}",),
        "return {{**data, '{key}': {v}}}",
        ("dict",),
        level=1,
        params={"key": ("red", "size"), "v": (0, 1, 10)},
    ),
    Family(
        "count_items(words)",
        ("returns a dictionary that maps each word to how often it occurs in the list",),
        "return {{w: words.count(w) for w in words}}",
        ("words",),
        level=1,
    ),
    Family(
        "word_lengths(words)",
        ("returns a dictionary that maps each word to its length",),
        "return {{w: len(w) for w in words}}",
        ("words",),
        level=1,
    ),
    Family(
        "letter_counts(text)",
        ("returns a dictionary that maps each character of a string to how often it occurs",),
        "return {{c: text.count(c) for c in text}}",
        ("word",),
        level=1,
    ),
    Family(
        "zip_to_dict(keys, values)",
        ("returns a dictionary that maps each key to the value at the same place, up to the shorter list",),
        "return dict(zip(keys, values))",
        ("words", "ints"),
        level=1,
    ),
    Family(
        "keys_with_value(data)",
        ("returns the sorted list of keys whose value is {what}",),
        "return sorted(key for key, v in data.items() if v {test})",
        ("dict",),
        level=2,
        params={"what,test": (("positive", "> 0"), ("negative", "< 0"), ("even", "% 2 == 0"), ("above 10", "> 10"))},
    ),
    Family(
        "merge(a, b)",
        ("returns a dictionary with the items of a and b, those of b taking precedence",),
        "return {{**a, **b}}",
        ("dict", "dict"),
        level=2,
    ),
)
