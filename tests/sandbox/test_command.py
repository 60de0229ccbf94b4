"""`surefoot sandbox run`, and what a recipe says about limits and images."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.config import ImageConfig, Recipe, SandboxConfig
from surefoot.domains import build_domain
from surefoot.errors import ConfigError
from surefoot.protocols import Call, Program
from surefoot.recipe import load_recipe, parse_recipe, to_toml
from surefoot.rewards.code import CodeGrader
from surefoot.sandbox.from_recipe import sandbox_of
from surefoot.types import IsolationLevel, Rollout, Task


@pytest.fixture
def level(sandbox: object) -> IsolationLevel:
    return sandbox.level  # type: ignore[attr-defined,no-any-return]


def surefoot(level: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from surefoot.cli import main; main()", "sandbox", "run", "--level", level]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, input=stdin, timeout=120)


def test_a_program_is_run(level: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print(input()[::-1]); print('\\x1b[2J', open('data.txt').read())")
    (tmp_path / "data.txt").write_text("laid in")
    done = surefoot(level, str(tmp_path / "p.py"), "--stdin", "-", "--file", str(tmp_path / "data.txt"), stdin="abc\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "cba\n\\x1b[2J laid in\n"  # what steers a terminal is shown, not done
    assert done.stderr.startswith("ok: exit 0, ") and f", {level}, python@" in done.stderr


def test_what_is_wrong_with_it_is_said(level: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("while True: pass")
    done = surefoot(level, str(tmp_path / "p.py"), "--cpu-seconds", "0.2", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["outcome"] == "timeout"
    assert "cannot be read as text" in surefoot(level, "nowhere.py").stderr
    assert "there is no image 'java'" in surefoot(level, "--image", "java", str(tmp_path / "p.py")).stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_is_compiled_and_run(level: str, tmp_path: Path) -> None:
    if level != "namespaces":
        pytest.skip("programs that start others need the level namespaces")
    (tmp_path / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("from C"); return 0; }\n')
    file = str(tmp_path / "main.c")
    done = surefoot(level, "--file", file, "--cpu-seconds", "20", "--", "sh", "-c", "cc main.c -o main && ./main")
    assert done.stdout == "from C\n", done.stderr


# ------------------------------------------------------------------------------------------------------ the recipe


def test_the_recipes_limits_hold_for_every_run(level: IsolationLevel) -> None:
    config = SandboxConfig(level=level, workers=1, cpu_seconds=0.2, memory_mb=100, output_kb=1)
    with sandbox_of(config) as box:
        assert box.run(Program(code="while True: pass")).outcome == "timeout"
        assert box.run(Program(code="x = bytearray(300 << 20)")).outcome == "out_of_memory"
        assert box.run(Program(code="print('x' * 5000)")).outcome == "output_limit"
        assert box.call("def f():\n    while True: pass", [Call("f")])[1].outcome == "timeout"
        checks, execution = box.judge("def f():\n    while True: pass", "assert f() == 1")
        assert execution.outcome == "timeout" and not any(check.passed for check in checks)
        task = Task("d/0", "d", (), checks={"tests": "assert f() == 1"})
        rollout = Rollout("d/0", "d", 0, (), (), (), "```python\ndef f():\n    while True: pass\n```", "stop")
        verdict = CodeGrader().grade(task, rollout, box)
        assert verdict.grade == "wrong" and "0.2 s" in verdict.reason


def test_images_of_the_recipe(level: IsolationLevel) -> None:
    image = ImageConfig(env={"GREETING": "hello"}, clock=1e9)
    with sandbox_of(SandboxConfig(level=level, workers=1, images={"still": image})) as box:
        code = "import os, time\nprint(os.environ['GREETING'], time.time())"
        ran = box.run(Program(code=code, image="still"))
        assert ran.stdout == "hello 1000000000.0\n" and ran.image.startswith("still@")


RECIPE = {
    "model": "tiny",
    "sandbox": {"images": {"science": {"packages": ["numpy"], "env": {"A": "b"}}}},
    "domains": [{"name": "d", "source": "code", "image": "science"}],
}


def test_a_domain_names_its_image(tmp_path: Path) -> None:
    recipe = parse_recipe(RECIPE)
    grader = build_domain(recipe.domains[0]).grader
    assert isinstance(grader, CodeGrader) and grader.image == "science"
    (tmp_path / "r.toml").write_text(to_toml(recipe))
    assert load_recipe(tmp_path / "r.toml") == recipe


def test_images_that_are_not_there_or_of_no_use_are_refused() -> None:
    wrong = {**RECIPE, "domains": [{"name": "d", "source": "code", "image": "sience"}]}
    with pytest.raises(ConfigError, match=r"domains.d.image: there is no image 'sience'"):
        parse_recipe(wrong)
    idle = Recipe.model_validate({**RECIPE, "domains": [{"name": "d", "source": "instructions", "image": "python"}]})
    with pytest.raises(ConfigError, match="runs no programs"):
        build_domain(idle.domains[0])
