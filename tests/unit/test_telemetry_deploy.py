"""Alert rules and dashboards: promtool proves the rules, and both name only metrics and labels that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from metier.harness.telemetry.names import METRICS, Kind

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = sorted((DEPLOY / "prometheus").glob("metier-[ar]*.yml"))
DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
PROMTOOL = shutil.which("promtool")


def series() -> set[str]:
    """What Prometheus sees of our metrics."""
    found: set[str] = set()
    for name, metric in METRICS.items():
        if metric.kind is Kind.HISTOGRAM:
            found |= {f"{name}_{part}" for part in ("bucket", "count", "sum")}
        else:
            found.add(name)
    return found


def rules() -> list[dict[str, Any]]:
    return [rule for path in RULES for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


RECORDED = {rule["record"] for rule in rules() if "record" in rule}


def used(expression: str) -> set[str]:
    return set(re.findall(r"\bmetier[_:][a-z0-9_:]+", re.sub(r'"[^"]*"', "", expression)))


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: apt-get install prometheus")
def test_promtool_finds_the_rules_sound_and_right() -> None:
    assert PROMTOOL is not None
    for command in (
        ["check", "rules", *map(str, RULES)],
        ["check", "config", str(DEPLOY / "prometheus" / "prometheus.yml")],
        ["test", "rules", str(DEPLOY / "prometheus" / "metier-tests.yml")],
    ):
        done = subprocess.run([PROMTOOL, *command], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_rules_name_metrics_that_there_are() -> None:
    for rule in rules():
        assert used(rule["expr"]) <= series() | RECORDED, rule


def test_every_alert_says_what_to_do_and_has_a_test() -> None:
    tests = yaml.safe_load((DEPLOY / "prometheus" / "metier-tests.yml").read_text())["tests"]
    fired = {one["alertname"] for test in tests for one in test.get("alert_rule_test", ()) if one["exp_alerts"]}
    alerts = [rule for rule in rules() if "alert" in rule]
    assert {rule["alert"] for rule in alerts} == fired
    for rule in alerts:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert set(rule["annotations"]) == {"summary", "action"}


def test_every_recorded_series_is_used() -> None:
    whole = "".join(path.read_text() for path in [*RULES, *DASHBOARDS])
    assert {name for name in RECORDED if whole.count(name) < 2} == set()


def targets(board: dict[str, Any]) -> Iterator[str]:
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


def test_every_metric_is_on_a_dashboard_and_nothing_else() -> None:
    shown = {name for path in DASHBOARDS for one in targets(json.loads(path.read_text())) for name in used(one)}
    assert shown <= series() | RECORDED
    by_rules = {name for rule in rules() if rule.get("record") in shown for name in used(rule["expr"])}
    seen = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown | by_rules}
    assert set(METRICS) <= seen


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_whole_and_of_no_place(path: Path) -> None:
    text = path.read_text()
    board = json.loads(text)
    assert board["uid"] == path.stem
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not mine & cells, panel["title"]
        cells |= mine
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert all('job=~"$job"' in target["expr"] for target in panel["targets"])
            labels = {name for target in panel["targets"] for name in re.findall(r"{{(\w+)}}", target["legendFormat"])}
            assert labels <= {label for metric in METRICS.values() for label in metric.labels} | {"job"}
    assert not re.search(r"https?://|\d+\.\d+\.\d+\.\d+|localhost", text)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: apt-get install prometheus")
def test_promtool_can_read_every_panel(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    expressions = [one for path in DASHBOARDS for one in targets(json.loads(path.read_text()))]
    made = [{"record": f"panel:{index}", "expr": one} for index, one in enumerate(expressions)]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": made}]}))
    done = subprocess.run([PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
