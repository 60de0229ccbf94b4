"""Prometheus: the newest figures of a run at `http://127.0.0.1:9464/metrics`, to be scraped for alarms."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

from surefoot.track.tracker import About


class Prometheus:
    """Gauges `surefoot_reward`, `surefoot_domain_pass_rate{domain="code"}`, ...; a counter of events by kind."""

    keeps_steps = False

    def __init__(self) -> None:
        self._lock = Lock()  # the server answers from threads of its own
        self._step, self._told = 0, 0.0
        self._values: Mapping[str, float] = {}
        self._events: Counter[str] = Counter()
        self._about: About | None = None
        self._server: Any = None

    def open(self, about: About) -> str:
        from prometheus_client import CollectorRegistry, start_http_server

        self._about = about
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        settings = about.settings
        self._server, _ = start_http_server(settings.port, settings.host, registry)
        return f"http://{settings.host}:{self._server.server_port}/metrics"

    def forget_after(self, step: int) -> None:
        with self._lock:
            self._step = step

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        with self._lock:
            self._step, self._values, self._told = step, values, time.time()

    def event(self, step: int, kind: str, text: str) -> None:
        with self._lock:
            self._events[kind] += 1

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def collect(self) -> Iterator[Any]:
        """Called by the registry for each scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        with self._lock:
            step, values, told, events = self._step, self._values, self._told, dict(self._events)
        if self._about is not None:
            recipe = self._about.config
            said = {"name": self._about.name, "id": self._about.id, "model": str(recipe.get("model", ""))}
            yield InfoMetricFamily("surefoot_run", "Which run this is.", said)
            if "steps" in recipe:
                yield GaugeMetricFamily("surefoot_steps", "Steps that the recipe asks for.", float(recipe["steps"]))
        yield GaugeMetricFamily("surefoot_step", "Steps taken.", step)
        if told:
            text = "When the last step ended, seconds since 1970: alarm on its age."
            yield GaugeMetricFamily("surefoot_last_step_timestamp_seconds", text, told)
        counted = CounterMetricFamily("surefoot_events", "Events of this process by kind.", labels=["event"])
        for kind, count in events.items():
            counted.add_metric([kind], count)
        yield counted
        yield from _gauges(values)


def _gauges(values: Mapping[str, float]) -> Iterator[Any]:
    """One family a name; `domains/NAME/x` becomes `surefoot_domain_x{domain="NAME"}`."""
    from prometheus_client.core import GaugeMetricFamily

    families: dict[str, Any] = {}
    for name, value in values.items():
        head, _, rest = name.partition("/")
        domain, _, of_domain = rest.partition("/")
        per_domain = head == "domains" and of_domain
        plain = re.sub(r"[^a-zA-Z0-9_]", "_", f"surefoot_domain_{of_domain}" if per_domain else f"surefoot_{name}")
        labels = {"domain": domain} if per_domain else {}
        if plain not in families:
            meaning = f"{of_domain if per_domain else name} of the last step."
            families[plain] = GaugeMetricFamily(plain, meaning, labels=list(labels))
        families[plain].add_metric(list(labels.values()), value)
    return iter(families.values())


make = Prometheus
