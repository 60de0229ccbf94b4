"""Audits several domains and writes the reports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from surefoot.config import DomainConfig, IntegrityConfig
from surefoot.domains.audit.cases import Case
from surefoot.domains.audit.measure import audit
from surefoot.domains.audit.page import to_html
from surefoot.domains.audit.record import as_data, write_cards
from surefoot.domains.audit.result import Audit
from surefoot.domains.audit.twin import ask_twins
from surefoot.domains.catalogue import build_domain
from surefoot.sandbox import open_sandbox


def audit_all(
    configs: Sequence[DomainConfig],
    tasks: int,
    *,
    cases: Mapping[str, Sequence[Case]] | None = None,
    integrity: IntegrityConfig | None = None,
) -> Iterator[Audit]:
    """The audit of each domain, as soon as it is done. A card that a domain has already is left out of account.

    Args:
        cases: Texts that people rejected, by domain; a single domain is tried with all of them.
        integrity: What the recipe does about findings.

    Raises ConfigError or DataError for a domain that cannot be built, SandboxError where no sandbox is to be had.
    """
    configs = [config.model_copy(update={"card": None}) for config in configs]
    domains = [build_domain(config) for config in configs]
    twins = ask_twins(configs)
    with open_sandbox() as sandbox:
        for config, domain, twin in zip(configs, domains, twins, strict=True):
            known = cases or {}
            mine = [c for some in known.values() for c in some] if len(configs) == 1 else known.get(config.name, [])
            yield audit(domain, sandbox, tasks, source=config.source, twin=twin, cases=mine, integrity=integrity)


def write_reports(audits: Sequence[Audit], directory: Path, fail_over: float) -> None:
    """Write `audit.html`, `audit.json` and `cards/DOMAIN.json` into the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    data = {
        "fail_over": fail_over,
        "failed": [found.domain for found in audits if found.fails(fail_over)],
        "domains": [as_data(found) for found in audits],
    }
    text = json.dumps(data, indent=1, ensure_ascii=True) + "\n"
    (directory / "audit.json").write_text(text, encoding="utf-8")
    (directory / "audit.html").write_text(to_html(audits, fail_over), encoding="utf-8")
    write_cards(audits, directory)
