"""Audits every reasoning-gym generator, as published and as Surefoot offers it, and the other built-in domains.

    python benchmarks/audit_table.py --out runs/audit              # about half an hour on 2 cores; resumes
    python benchmarks/audit_table.py --out runs/audit --quick      # a few generators

Writes one JSON line a domain to `published.jsonl` and `offered.jsonl`, and `table.md`, the table of docs/audit.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from surefoot.config import DomainConfig
from surefoot.domains import build_domain
from surefoot.domains.audit import Audit, audit
from surefoot.domains.audit.record import as_data, from_data
from surefoot.domains.audit.result import LUCK
from surefoot.domains.audit.twin import ask_twins
from surefoot.domains.reasoning import EXCLUDED, described
from surefoot.domains.reasoning_raw import as_published
from surefoot.errors import SurefootError
from surefoot.protocols import Sandbox
from surefoot.sandbox import open_sandbox

CHUNK = 13
OTHERS = ("code", "instructions")
QUICK = ("coin_flip", "game_of_life_halting", "gcd", "syllogism")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/audit"))
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="a few generators, fewer tasks")
    parser.add_argument("--only", choices=("published", "offered"), help="one of the two halves")
    options = parser.parse_args()
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    names = QUICK if options.quick else [name for name, _ in described()]
    others = () if options.quick else OTHERS
    tasks = 4 if options.quick else options.tasks
    with open_sandbox() as sandbox:
        if options.only != "offered":
            run(options.out / "published.jsonl", names, sandbox, tasks, raw=True)
        if options.only != "published":
            run(options.out / "offered.jsonl", [*others, *names], sandbox, tasks, raw=False)
    published, offered = read(options.out / "published.jsonl"), read(options.out / "offered.jsonl")
    (options.out / "table.md").write_text("\n".join(table(published, offered)) + "\n")
    print(json.dumps({
        "published": len(published), "published_with_faults": sum(faulty(a) for a in published.values()),
        "offered": len(offered), "offered_with_faults": sum(faulty(a) for a in offered.values()),
        "excluded": len(EXCLUDED), "seconds": round(time.monotonic() - began), "quick": options.quick,
    }))  # fmt: skip


def run(path: Path, names: Sequence[str], sandbox: Sandbox, tasks: int, *, raw: bool) -> None:
    """Audit what `path` does not hold yet, a chunk at a time, each chunk with one second process."""
    done = read(path)
    todo = [name for name in names if name not in done]
    for start in range(0, len(todo), CHUNK):
        chunk = [config_of(name) for name in todo[start : start + CHUNK]]
        twins = ask_twins(chunk, raw=raw)
        for config, twin in zip(chunk, twins, strict=True):
            began = time.monotonic()
            try:
                domain = as_published(config) if raw else build_domain(config)
            except SurefootError as error:
                print(f"{config.name}: {error}")
                continue
            found = audit(domain, sandbox, tasks, source=config.source, twin=twin)
            with path.open("a") as file:
                file.write(json.dumps({**as_data(found), "twin": twin is not None}) + "\n")
            print(
                f"{path.stem} {config.name} {time.monotonic() - began:.1f} s: {'; '.join(found.problems)[:200]}",
                flush=True,
            )


def config_of(name: str) -> DomainConfig:
    return DomainConfig(name=name, source=name if name in OTHERS else f"reasoning_gym:{name}")


def read(path: Path) -> dict[str, Audit]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [{key: value for key, value in json.loads(line).items() if key != "twin"} for line in lines]
    return {row["domain"]: from_data(row) for row in rows}


def faulty(found: Audit) -> bool:
    """Whether the audit found a fault of the verifier, rather than a matter of luck or of speed."""
    return found.fails(0.0) or found.floor >= 0.05 or found.guess_rate > found.chance + 0.2


def table(published: dict[str, Audit], offered: dict[str, Audit]) -> Iterator[str]:
    yield "| generator | false accepts | floor | blind guess | oracle fails | crashes | unstable | ms | as offered |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in sorted(published):
        a, b = published[name], offered.get(name)
        best = a.best_guess
        guess = f"{a.guess_rate:.0%} {best.name}" if best and best.accepted else "none"
        cells = [
            name,
            f"{a.fooled.hits}/{a.fooled.tries}",
            f"{a.floor:.2f}",
            guess.replace("the ", "").replace(" of the prompt", ""),
            f"{a.oracle_failures.hits}/{a.oracle_failures.tries}" if a.oracle_failures.tries else "no references",
            f"{a.ungradable or 0}",
            f"{a.unstable}",
            f"{1000 * a.mean_seconds:.0f}",
            said(a, b),
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def said(before: Audit, after: Audit | None) -> str:
    """What became of a generator: sound, mended, or what is still wrong."""
    if after is None:
        return "not offered"
    if after.error or after.fails(0.0):
        return "; ".join(after.problems)[:160]
    if before.fails(0.0) or before.guess_rate > after.guess_rate + LUCK:
        return "mended"
    lucky = after.guess_rate > after.chance + LUCK
    return f"holds; chance is given as {after.chance:.0%}" if lucky else "holds"


if __name__ == "__main__":
    main()
