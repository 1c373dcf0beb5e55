"""Write a filing's files: schema, four linkbases, instance. One element a line, so that an edit is a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from .filing import Concept, Context, Filing

_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_INSTANCE = "http://www.xbrl.org/2003/instance"
_LINKBASE = "http://www.xbrl.org/2003/linkbase"
_XLINK = "http://www.w3.org/1999/xlink"
_DIMENSIONS = "http://xbrl.org/2005/xbrldt"
_LABEL_ROLE = "http://www.xbrl.org/2003/role/label"
_TOTAL_ROLE = "http://www.xbrl.org/2003/role/totalLabel"
SUMMATION = "http://www.xbrl.org/2003/arcrole/summation-item"
_PARENT_CHILD = "http://www.xbrl.org/2003/arcrole/parent-child"
_CONCEPT_LABEL = "http://www.xbrl.org/2003/arcrole/concept-label"
_ARCROLES = "http://xbrl.org/int/dim/arcrole"
_TYPES = {
    "money": "xbrli:monetaryItemType",
    "shares": "xbrli:sharesItemType",
    "per_share": "xbrli:decimalItemType",
}
_ABSTRACT = "xbrli:stringItemType"


def render(filing: Filing, *, shuffled: bool = False) -> dict[str, str]:
    """File name → text. `shuffled`: the same filing written in another order, with other ids."""
    stem = filing.stem
    return {
        f"{stem}.xsd": _schema(filing),
        f"{stem}_cal.xml": _linkbase(filing, _calculation(filing)),
        f"{stem}_def.xml": _linkbase(filing, _definition(filing)),
        f"{stem}_lab.xml": _linkbase(filing, _labels(filing)),
        f"{stem}_pre.xml": _linkbase(filing, _presentation(filing)),
        filing.entry: _instance(filing, shuffled),
    }


def role_uri(filing: Filing, role: str) -> str:
    """The extended link role of a statement."""
    return f"{filing.namespace}/role/{role}"


def _schema(filing: Filing) -> str:
    linkbases = {"cal": "calculation", "def": "definition", "lab": "label", "pre": "presentation"}
    lines = [
        _XML,
        (
            f'<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xbrli="{_INSTANCE}"'
            f' xmlns:link="{_LINKBASE}" xmlns:xlink="{_XLINK}" xmlns:xbrldt="{_DIMENSIONS}"'
            f' xmlns:{filing.prefix}="{filing.namespace}" targetNamespace="{filing.namespace}"'
            ' elementFormDefault="qualified">'
        ),
        "<xsd:annotation>",
        "<xsd:appinfo>",
    ]
    for role in filing.roles:
        lines.append(f'<link:roleType id="{role.name}" roleURI="{role_uri(filing, role.name)}">')
        lines.append(f"<link:definition>{escape(role.title)}</link:definition>")
        kinds = ("calculation", "definition", "presentation")
        lines += [f"<link:usedOn>link:{kind}Link</link:usedOn>" for kind in kinds]
        lines.append("</link:roleType>")
    for short, kind in linkbases.items():
        lines.append(
            f'<link:linkbaseRef xlink:type="simple" xlink:href="{filing.stem}_{short}.xml"'
            f' xlink:role="http://www.xbrl.org/2003/role/{kind}LinkbaseRef"'
            ' xlink:arcrole="http://www.w3.org/1999/xlink/properties/linkbase"/>'
        )
    lines += ["</xsd:appinfo>", "</xsd:annotation>"]
    for namespace, place in (
        (_INSTANCE, "http://www.xbrl.org/2003/xbrl-instance-2003-12-31.xsd"),
        (_DIMENSIONS, "http://www.xbrl.org/2005/xbrldt-2005.xsd"),
    ):
        lines.append(f'<xsd:import namespace="{namespace}" schemaLocation="{place}"/>')
    lines += [_element(filing, concept) for concept in filing.concepts]
    return "\n".join([*lines, "</xsd:schema>", ""])


def _element(filing: Filing, concept: Concept) -> str:
    abstract = concept.kind not in _TYPES
    group = {"axis": "xbrldt:dimensionItem", "table": "xbrldt:hypercubeItem"}.get(concept.kind, "xbrli:item")
    parts = [f'name="{concept.name}"', f'id="{filing.prefix}_{concept.name}"']
    parts += [f'type="{_TYPES.get(concept.kind, _ABSTRACT)}"', f'substitutionGroup="{group}"']
    parts += [f'xbrli:periodType="{concept.period}"'] + ([f'xbrli:balance="{concept.balance}"'] * bool(concept.balance))
    parts += ['abstract="true"'] * abstract + ['nillable="true"']
    return f"<xsd:element {' '.join(parts)}/>"


def _linkbase(filing: Filing, body: Iterator[str]) -> str:
    roles = [
        f'<link:roleRef xlink:type="simple" xlink:href="{filing.stem}.xsd#{role.name}"'
        f' roleURI="{role_uri(filing, role.name)}"/>'
        for role in filing.roles
    ]
    arcroles = [
        f'<link:arcroleRef xlink:type="simple" xlink:href="http://www.xbrl.org/2005/xbrldt-2005.xsd#{name}"'
        f' arcroleURI="{_ARCROLES}/{name}"/>'
        for name in ("all", "hypercube-dimension", "dimension-domain", "dimension-default", "domain-member")
    ]
    text = list(body)
    own = [line for line in roles if any(f'xlink:role="{line.split(chr(34))[5]}"' in part for part in text)]
    used = [line for line in arcroles if any(f'"{line.split(chr(34))[5]}"' in part for part in text)]
    head = f'<link:linkbase xmlns:link="{_LINKBASE}" xmlns:xlink="{_XLINK}" xmlns:xbrldt="{_DIMENSIONS}">'
    return "\n".join([_XML, head, *own, *used, *text, "</link:linkbase>", ""])


def _locators(filing: Filing, names: Sequence[str]) -> Iterator[str]:
    for name in dict.fromkeys(names):
        place = f"{filing.stem}.xsd#{filing.prefix}_{name}"
        yield f'<link:loc xlink:type="locator" xlink:href="{place}" xlink:label="{name}"/>'


def _arc(kind: str, arcrole: str, parent: str, child: str, rest: str) -> str:
    ends = f'xlink:from="{parent}" xlink:to="{child}"'
    return f'<link:{kind}Arc xlink:type="arc" xlink:arcrole="{arcrole}" {ends} {rest}/>'


def _link(filing: Filing, kind: str, role: str, lines: Sequence[str]) -> Iterator[str]:
    yield f'<link:{kind}Link xlink:type="extended" xlink:role="{role_uri(filing, role)}">'
    yield from lines
    yield f"</link:{kind}Link>"


def _calculation(filing: Filing) -> Iterator[str]:
    for role in filing.roles:
        arcs = [arc for arc in filing.arcs if arc.role == role.name]
        if not arcs:
            continue
        lines = list(_locators(filing, [name for arc in arcs for name in (arc.parent, arc.child)]))
        for arc in arcs:
            place = role.concepts.index(arc.child) + 1
            lines.append(
                _arc("calculation", SUMMATION, arc.parent, arc.child, f'order="{place}" weight="{arc.weight}"')
            )
        yield from _link(filing, "calculation", role.name, lines)


def _presentation(filing: Filing) -> Iterator[str]:
    totals = {concept.name for concept in filing.concepts if concept.total}
    for role in filing.roles:
        heading, *rest = role.concepts
        lines = list(_locators(filing, role.concepts))
        for place, name in enumerate(rest, 1):
            total = f' preferredLabel="{_TOTAL_ROLE}"' if name in totals else ""
            lines.append(_arc("presentation", _PARENT_CHILD, heading, name, f'order="{place}"{total}'))
        yield from _link(filing, "presentation", role.name, lines)


def _labels(filing: Filing) -> Iterator[str]:
    yield '<link:labelLink xlink:type="extended" xlink:role="http://www.xbrl.org/2003/role/link">'
    yield from _locators(filing, [concept.name for concept in filing.concepts])
    for concept in filing.concepts:
        texts = {_LABEL_ROLE: concept.label}
        if concept.total:
            texts[_TOTAL_ROLE] = f"Total: {concept.label}"
        for index, (role, text) in enumerate(texts.items()):
            label = f"{concept.name}_{index}"
            yield (
                f'<link:label xlink:type="resource" xlink:label="{label}" xlink:role={quoteattr(role)}'
                f' xml:lang="en">{escape(text)}</link:label>'
            )
            ends = f'xlink:from="{concept.name}" xlink:to="{label}"'
            yield f'<link:labelArc xlink:type="arc" xlink:arcrole="{_CONCEPT_LABEL}" {ends}/>'
    yield "</link:labelLink>"


def _definition(filing: Filing) -> Iterator[str]:
    if not filing.axis:
        return
    role = filing.roles[-1]
    table, axis, domain, *_ = role.concepts[1:]
    items = role.concepts[4 + len(filing.members) :]
    heading = role.concepts[0]
    lines = list(_locators(filing, role.concepts))
    lines.append(_arc("definition", f"{_ARCROLES}/all", heading, table, 'order="1" xbrldt:contextElement="segment"'))
    lines.append(_arc("definition", f"{_ARCROLES}/hypercube-dimension", table, axis, 'order="1"'))
    lines.append(_arc("definition", f"{_ARCROLES}/dimension-domain", axis, domain, 'order="1"'))
    # facts without a member are those of the whole company; two arcs may not join the same two locators
    href = f"{filing.stem}.xsd#{filing.prefix}_{domain}"
    lines.append(f'<link:loc xlink:type="locator" xlink:href="{href}" xlink:label="{domain}_default"/>')
    default = _arc("definition", f"{_ARCROLES}/dimension-default", axis, f"{domain}_default", 'order="1"')
    lines.append(default)
    for place, member in enumerate(filing.members, 1):
        lines.append(_arc("definition", f"{_ARCROLES}/domain-member", domain, member, f'order="{place}"'))
    for place, item in enumerate(items, 1):
        lines.append(_arc("definition", f"{_ARCROLES}/domain-member", heading, item, f'order="{place}"'))
    yield from _link(filing, "definition", role.name, lines)


def _instance(filing: Filing, shuffled: bool) -> str:
    names = {name: f"c{index}" if shuffled else name for index, name in enumerate(sorted(filing.contexts))}
    lines = [
        _XML,
        (
            f'<xbrli:xbrl xmlns:xbrli="{_INSTANCE}" xmlns:link="{_LINKBASE}" xmlns:xlink="{_XLINK}"'
            ' xmlns:iso4217="http://www.xbrl.org/2003/iso4217" xmlns:xbrldi="http://xbrl.org/2006/xbrldi"'
            f' xmlns:{filing.prefix}="{filing.namespace}">'
        ),
        f'<link:schemaRef xlink:type="simple" xlink:href="{filing.stem}.xsd"/>',
    ]
    for name, context in filing.contexts.items():
        lines += _context(filing, names[name], context)
    for name, measure in filing.units.items():
        lines += _unit(name, measure)
    facts = list(reversed(filing.facts)) if shuffled else filing.facts
    lines += [
        f'<{filing.prefix}:{fact.concept} contextRef="{names[fact.context]}" unitRef="{fact.unit}"'
        f' decimals="{fact.decimals}">{fact.value}</{filing.prefix}:{fact.concept}>'
        for fact in facts
    ]
    return "\n".join([*lines, "</xbrli:xbrl>", ""])


def _context(filing: Filing, name: str, context: Context) -> Iterator[str]:
    yield f'<xbrli:context id="{name}">'
    identifier = f'<xbrli:identifier scheme="http://register.example">{filing.entity}</xbrli:identifier>'
    members = "".join(
        f'<xbrldi:explicitMember dimension="{filing.prefix}:{axis}">{filing.prefix}:{member}</xbrldi:explicitMember>'
        for axis, member in context.dimensions
    )
    segment = f"<xbrli:segment>{members}</xbrli:segment>" if members else ""
    yield f"<xbrli:entity>{identifier}{segment}</xbrli:entity>"
    start, slash, end = context.period.partition("/")
    if slash:
        dates = f"<xbrli:startDate>{start}</xbrli:startDate><xbrli:endDate>{end}</xbrli:endDate>"
    else:
        dates = f"<xbrli:instant>{start}</xbrli:instant>"
    yield f"<xbrli:period>{dates}</xbrli:period>"
    yield "</xbrli:context>"


def _unit(name: str, measure: str) -> Iterator[str]:
    above, slash, below = measure.partition("/")
    yield f'<xbrli:unit id="{name}">'
    if slash:
        yield (
            f"<xbrli:divide><xbrli:unitNumerator><xbrli:measure>{above}</xbrli:measure></xbrli:unitNumerator>"
            f"<xbrli:unitDenominator><xbrli:measure>{below}</xbrli:measure></xbrli:unitDenominator></xbrli:divide>"
        )
    else:
        yield f"<xbrli:measure>{above}</xbrli:measure>"
    yield "</xbrli:unit>"
