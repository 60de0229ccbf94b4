"""Temporary folders: gone with their owner, or with the next one after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from surefoot.protocols import Program
from surefoot.sandbox import Sandbox
from surefoot.sandbox.scratch import Scratch, sweep


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_folders_of_the_living_stay_and_of_the_dead_go(own_folder: Path) -> None:
    code = (
        "import sys, tempfile, time\n"
        f"tempfile.tempdir = {str(own_folder)!r}\n"
        "from surefoot.sandbox.scratch import Scratch\n"
        "kept = Scratch('box')\n(kept.path / 'file').write_text('x')\nprint(kept.path, flush=True)\ntime.sleep(600)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    with Scratch("box") as mine:
        assert sweep(young=0) == []  # both are held
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert sweep() == []  # too young to be sure
        assert sweep(young=0) == [theirs] and mine.path.is_dir()
    assert list(own_folder.iterdir()) == []


def test_links_and_files_of_that_name_are_left_alone(
    own_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").write_text("x")
    (own_folder / "surefoot-scratch-link").symlink_to(elsewhere)
    (own_folder / "surefoot-scratch-file").write_text("x")
    (own_folder / "surefoot-runs").mkdir()  # a person's
    assert sweep(young=0) == []
    assert (elsewhere / "precious").exists() and (own_folder / "surefoot-runs").is_dir()


def test_what_a_killed_sandbox_left_is_cleared_by_the_next(own_folder: Path) -> None:
    code = (
        "import tempfile, time\n"
        f"tempfile.tempdir = {str(own_folder)!r}\n"
        "from surefoot.protocols import Program\nfrom surefoot.sandbox import Sandbox\n"
        "box = Sandbox('landlock', workers=1)\nbox.run(Program(code='print(1)'))\n"
        "print('ran', flush=True)\ntime.sleep(600)\n"
    )
    pipe = subprocess.PIPE
    other = subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True)
    assert other.stdout is not None and other.stderr is not None
    if other.stdout.readline() != "ran\n":
        other.kill()
        pytest.skip(f"no level landlock here: {other.stderr.read()[-200:]}")
    other.send_signal(signal.SIGKILL)
    other.wait()
    (left,) = own_folder.iterdir()
    os.utime(left, (0, 0))  # an hour later
    with Sandbox("landlock", workers=1) as box:
        assert box.run(Program(code="print(2)")).outcome == "ok"
        assert not left.exists()
    assert list(own_folder.iterdir()) == []
