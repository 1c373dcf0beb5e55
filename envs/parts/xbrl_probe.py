"""Load an XBRL instance with Arelle, offline, and say what it holds and what is wrong with it, as JSON.

Runs in a sandbox of the xbrl image; no import of ours, since its source is sent there. Nothing that the files hold
makes `examine` raise: what is wrong with them is the answer's `failure`.
"""
# pyright: reportMissingImports=false

import os
import tempfile
from typing import Any

MOST_BYTES = 8 << 20
MOST_FACTS = 20000


def examine(question: dict[str, Any]) -> dict[str, Any]:
    """{"failure": why}, or facts, links, labels, concepts and the validation's messages."""
    root, entry = question["root"], question["entry"]
    files: dict[str, int] = {}
    for folder, _, found in os.walk(root):
        for name in found:
            path = os.path.join(folder, name)
            files[os.path.relpath(path, root)] = os.path.getsize(path)
    if entry not in files:
        return {"failure": f"there is no {entry}", "files": sorted(files)[:50]}
    if sum(files.values()) > MOST_BYTES:
        return {"failure": f"the files are larger than {MOST_BYTES >> 20} MiB"}
    for path in files:
        with open(os.path.join(root, path), "rb") as file:
            head = file.read()
        if b"<!DOCTYPE" in head or b"<!ENTITY" in head:
            return {"failure": f"{path} declares a document type"}
    os.environ["HOME"] = os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="arelle-")
    try:
        return {"failure": "", "files": sorted(files), **_loaded(os.path.join(root, entry), question["calculation"])}
    except BaseException as error:
        return {"failure": f"Arelle cannot load it: {type(error).__name__}: {str(error)[:200]}"}


def _loaded(path: str, calculation: str) -> dict[str, Any]:
    from arelle.api.Session import Session
    from arelle.RuntimeOptions import RuntimeOptions

    options = RuntimeOptions(
        entrypointFile=path,
        validate=True,
        calcs=calculation,
        internetConnectivity="offline",
        logFile="logToBuffer",
        logFormat="[%(messageCode)s] %(message)s",
        keepOpen=True,
    )
    with Session() as session:
        session.run(options)
        messages = [line for line in session.get_logs("text").splitlines() if line.strip()]
        models = session.get_models()
        if len(models) != 1:
            return {"failure": "Arelle found no instance in it"}
        model = models[0]
        codes = [str(code) for code in model.errors]
        if len(model.facts) > MOST_FACTS:
            return {"failure": f"it has more than {MOST_FACTS} facts"}
        facts = [_fact(fact) for fact in model.facts]
        own = [concept for concept in model.qnameConcepts.values() if _is_own(concept, path)]
        return {
            "codes": codes,
            "messages": [line[:400] for line in messages if line.startswith("[")][:40],
            "facts": facts,
            "concepts": sorted(_concept(concept) for concept in own),
            "links": sorted(_links(model)),
        }


def _is_own(concept: Any, path: str) -> bool:
    return os.path.dirname(str(concept.modelDocument.filepath)) == os.path.dirname(path)


def _fact(fact: Any) -> dict[str, Any]:
    context, unit = fact.context, fact.unit
    return {
        "concept": fact.qname.localName,
        "namespace": fact.qname.namespaceURI,
        "period": _period(context),
        "entity": "|".join(context.entityIdentifier) if context is not None else "",
        "dimensions": sorted(
            [str(axis.localName), str(value.memberQname.localName) if value.isExplicit else "typed"]
            for axis, value in (context.qnameDims if context is not None else {}).items()
        ),
        "unit": _unit(unit),
        "decimals": str(fact.decimals),
        "value": str(fact.value).strip()[:60],
        "nil": bool(fact.isNil),
    }


def _period(context: Any) -> str:
    if context is None:
        return ""
    if context.isInstantPeriod:
        return _text(context, "instant")
    if context.isStartEndPeriod:
        return f"{_text(context, 'startDate')}/{_text(context, 'endDate')}"
    return "forever"


def _text(context: Any, name: str) -> str:
    for element in context.period:
        if str(element.tag).endswith("}" + name):
            return str(element.text).strip()[:30]
    return ""


def _unit(unit: Any) -> str:
    if unit is None:
        return ""
    above, below = (["*".join(sorted(str(name) for name in side))] for side in unit.measures)
    return "/".join(part for part in (*above, *below) if part)


def _concept(concept: Any) -> list[str]:
    return [
        concept.name,
        str(concept.typeQname),
        str(concept.periodType),
        str(concept.balance),
        str(concept.isAbstract),
        str(concept.substitutionGroupQname),
    ]


def _links(model: Any) -> list[list[str]]:
    """Every relationship: its kind, role, ends, and what it carries."""
    from arelle import XbrlConst

    found: list[list[str]] = []
    for arcrole, role, _, arc in list(model.baseSets):
        if role is None or arc is not None or not str(arcrole).startswith("http"):
            continue
        for link in model.relationshipSet(arcrole, role).modelRelationships:
            ends = [_name(link.fromModelObject), _name(link.toModelObject)]
            carried = [_number(link.weight), _number(link.order), str(link.preferredLabel)]
            if arcrole == XbrlConst.conceptLabel:
                label = link.toModelObject
                carried = [str(label.role), str(label.xmlLang), str(label.textValue)[:500]]
            found.append([str(arcrole), str(role), *ends, *carried])
    return found


def _name(thing: Any) -> str:
    qname = getattr(thing, "qname", None)
    return str(qname.localName) if qname is not None else ""


def _number(value: Any) -> str:
    return "" if value is None else f"{float(value):g}"
