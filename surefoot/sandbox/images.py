"""Images: which interpreter, packages and environment a sandboxed program sees."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from surefoot.errors import SandboxError

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/box/work",
    "TMPDIR": "/box/tmp",
    "USER": "user",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUTF8": "1",
    # One thread each: a solution shall not fight its neighbours for cores, and forks with threads are not safe.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")

_QUERY = """
import importlib.util, json, os, sys
found = {}
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    if spec is None:
        found[name] = None
    elif spec.submodule_search_locations:
        found[name] = list(spec.submodule_search_locations)
    else:
        found[name] = [spec.origin]
print(json.dumps({"packages": found, "path": sys.path, "version": sys.version, "prefix": sys.base_prefix,
                  "base": os.path.realpath(sys.executable)}))
"""


@dataclass(frozen=True, slots=True)
class Image:
    """What a sandboxed program sees.

    The standard library and the system's programs are always there; of the site packages only those that are named,
    so that a data set with answers, installed beside them, stays out of reach.
    """

    python: str = sys.executable
    """The interpreter (it may be a virtual environment's)."""
    packages: tuple[str, ...] = ()
    """Importable site packages; they are imported once, before the first run."""
    preload: tuple[str, ...] = ()
    """More modules to import before the first run."""
    paths: tuple[str, ...] = ()
    """More host files and folders that are visible, read-only, under their own names."""
    search: tuple[str, ...] = ()
    """More folders on the module search path; visible like `paths`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Additions to the fixed environment."""
    deterministic: bool = True
    """Fix the seeds of `random` and numpy and what `os.urandom` gives."""
    clock: float | None = None
    """If given, `time.time` and `datetime.now` always say this (seconds since 1970)."""


def _pytest_image() -> dict[str, Image]:
    """The image that pytest files run in, if pytest is installed."""
    wanted = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
    if not all(importlib.util.find_spec(name) for name in wanted):
        return {}
    return {"pytest": Image(packages=wanted)}


DEFAULT_IMAGES: Mapping[str, Image] = {
    **_pytest_image(),
    "python": Image(),
    # numpy loads these when they are first named: 7 ms, if in a run.
    "python-scientific": Image(packages=("numpy",), preload=("numpy.random", "numpy.linalg", "numpy.fft")),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """An image resolved on this machine."""

    interpreter: str
    search: tuple[str, ...]
    mounts: tuple[str, ...]
    preload: tuple[str, ...]
    env: Mapping[str, str]
    image: Image
    name: str
    digest: str
    """12 hex digits over the image and the versions of what it names."""


def resolve(image: Image, name: str = "image") -> Layout:
    """Find what `image` names on this machine. Raises SandboxError if the interpreter or a package is missing."""
    bare = _query(image.python, "bare")
    full = _query(image.python, "site", *image.packages)
    folders: list[str] = []
    sites: list[str] = []
    for package, places in full["packages"].items():
        if places is None:
            fix = f"{image.python} -m pip install {package}"
            raise SandboxError(f"the package {package!r} of the sandbox image is not installed", where=name, fix=fix)
        for place in places:
            site = str(Path(place).parent)
            sites.append(site)
            folders += [place, *(str(libs) for libs in Path(site).glob(f"{package}.libs"))]
    standard = [path for path in bare["path"] if path and not path.endswith("/inside")]
    prefix = [] if bare["prefix"] == "/usr" else [bare["prefix"]]
    digest = hashlib.sha256(json.dumps([asdict(image), full["version"], folders], sort_keys=True).encode())
    return Layout(
        interpreter=bare["base"],
        search=tuple(dict.fromkeys([*standard, *sites, *image.search])),
        mounts=tuple(dict.fromkeys([*_SYSTEM, *prefix, *folders, *image.paths, *image.search])),
        preload=(*image.packages, *image.preload),
        env={**_ENVIRONMENT, **image.env},
        image=image,
        name=name,
        digest=digest.hexdigest()[:12],
    )


@cache
def _query(python: str, how: str, *packages: str) -> dict[str, Any]:
    flags = ["-s", "-P", "-S"] if how == "bare" else ["-s", "-P"]
    try:
        done = subprocess.run(
            [python, *flags, "-c", _QUERY, *packages], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"the sandbox image's interpreter {python} does not run: {error}") from None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
