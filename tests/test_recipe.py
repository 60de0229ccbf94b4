"""Recipes: every key documented, unknown ones refused with the nearest, overrides, and there and back as TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from surefoot.errors import ConfigError
from surefoot.recipe import differences, explain, keys, load_recipe, parse_recipe, select_domains, to_toml

GOOD = {"model": "tiny", "domains": [{"name": "gcd", "source": "reasoning_gym:gcd"}]}


def test_every_key_is_documented() -> None:
    table = dict(keys())
    assert 50 < len(table) < 150  # short enough to be read in a sitting
    for name, info in table.items():
        assert info.description, name
        assert name in explain(name)


@pytest.mark.parametrize(
    ("section", "key", "nearest"),
    [
        ("learner", "lrr", "learner.lr"),
        ("learner", "learning_rate", "learner.lr"),
        ("rollout", "num_generations", "rollout.samples"),
        ("rollout", "temprature", "rollout.temperature"),
        ("sandbox", "memory", "sandbox.memory_mb"),
    ],
)
def test_an_unknown_key_names_the_nearest(section: str, key: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key '{section}.{key}'.*did you mean '{nearest}'"):
        parse_recipe({**GOOD, section: {key: 1}})


def test_an_unknown_key_of_a_domain_names_the_domain() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'domains.gcd.shot' \(did you mean 'domains.shots'"):
        parse_recipe({"model": "tiny", "domains": [{**GOOD["domains"][0], "shot": 4}]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"domains": []}, "domains"),
        ({"domains": [*GOOD["domains"], *GOOD["domains"]]}, "two domains are called 'gcd'"),
        ({"domains": [{**GOOD["domains"][0], "weight": 0}]}, "nothing to draw"),
        ({"domains": [{**GOOD["domains"][0], "name": "a/b"}]}, r"domains.a/b.name"),
        ({"steps": 0}, "steps.*greater than or equal to 1"),
        ({"steps": "many"}, "steps.*'many'"),
        ({"learner": {"dtype": "int8"}}, "learner.dtype"),
        ({"rollout": {"temperature": 0}}, "rollout.temperature"),
    ],
)
def test_values_that_make_no_sense(change: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_recipe({**GOOD, **change})


def test_there_and_back_as_toml() -> None:
    options = {"a b": [1, 2.5, 'x"y\\z\nü'], "deep": {"on": True, "list": [{"k": 1}]}}
    domain = {"name": "d", "source": "file:x.jsonl", "options": options, "extract": "tag", "chance": 0.5}
    recipe = parse_recipe({**GOOD, "domains": [*GOOD["domains"], domain], "reward": {"weights": {"format": 0.1}}})
    assert parse_recipe(tomllib.loads(to_toml(recipe))) == recipe


class TestOverrides:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "r.toml"
        path.write_text(to_toml(parse_recipe(GOOD)))
        return path

    def test_sections_numbers_strings_and_domains(self, file: Path) -> None:
        given = ["learner.lr=2e-6", "steps=3", "model=./dir", "domains.gcd.shots=4", "warm_start.examples = 7"]
        recipe = load_recipe(file, given)
        assert (recipe.learner.lr, recipe.steps, recipe.model) == (2e-6, 3, "./dir")
        assert recipe.domains[0].shots == 4
        assert recipe.warm_start.examples == 7

    @pytest.mark.parametrize(
        ("override", "said"),
        [
            ("learner.lr", "KEY=VALUE"),
            ("=3", "KEY=VALUE"),
            ("domains.gdc.shots=1", "no domain 'gdc'.*did you mean 'gcd'"),
            ("steps.x=1", "not a section"),
            ("learner.rl=1", "did you mean 'learner.lr'"),
        ],
    )
    def test_wrong_ones(self, file: Path, override: str, said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            load_recipe(file, [override])

    def test_differences_are_named_by_key(self, file: Path) -> None:
        changed = differences(load_recipe(file), load_recipe(file, ["steps=9", "domains.gcd.weight=2"]))
        assert changed == ["domains.gcd.weight: 1.0 -> 2.0", "steps: 40 -> 9"]


def test_files_that_are_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such recipe"):
        load_recipe(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="no such recipe"):
        load_recipe(tmp_path)
    (tmp_path / "broken.toml").write_text("steps = = 3")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_recipe(tmp_path / "broken.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_recipe(tmp_path / "binary.toml")


def test_explaining() -> None:
    assert "float" in explain("learner.lr")
    assert "bonus_cap" in explain("reward")
    with pytest.raises(ConfigError, match=r"did you mean 'learner\.lr'"):
        explain("learner.lrr")


def test_selecting_domains() -> None:
    recipe = parse_recipe(GOOD)
    assert [d.name for d in select_domains(recipe, [])] == ["gcd"]
    assert select_domains(recipe, ["code:lists"])[0].source == "code:lists"
    with pytest.raises(ConfigError, match="did you mean 'gcd'"):
        select_domains(recipe, ["gdc"])


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent.parent / "recipes").glob("*.toml")), ids=lambda p: p.name
)
def test_every_shipped_recipe_is_valid(path: Path) -> None:
    load_recipe(path)
