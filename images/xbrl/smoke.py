"""Arelle's work once, offline: a small instance balances under calculation 1.1, and a wrong total in it is found."""

import os
import subprocess
from pathlib import Path

WORK = Path("/workspace")
INSTANCE = "http://www.xbrl.org/2003/instance"
SCHEMA = f"""<?xml version="1.0"?>
<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xbrli="{INSTANCE}" xmlns:t="http://t.example/"
 xmlns:link="http://www.xbrl.org/2003/linkbase" xmlns:xlink="http://www.w3.org/1999/xlink"
 targetNamespace="http://t.example/" elementFormDefault="qualified">
<xsd:annotation><xsd:appinfo><link:linkbaseRef xlink:type="simple" xlink:href="t_cal.xml"
 xlink:role="http://www.xbrl.org/2003/role/calculationLinkbaseRef"
 xlink:arcrole="http://www.w3.org/1999/xlink/properties/linkbase"/></xsd:appinfo></xsd:annotation>
<xsd:import namespace="{INSTANCE}" schemaLocation="http://www.xbrl.org/2003/xbrl-instance-2003-12-31.xsd"/>
%s
</xsd:schema>"""
ELEMENT = (
    '<xsd:element name="%s" id="t_%s" type="xbrli:monetaryItemType" substitutionGroup="xbrli:item"'
    ' xbrli:periodType="instant" xbrli:balance="debit" nillable="true"/>'
)
LINKBASE = """<?xml version="1.0"?>
<link:linkbase xmlns:link="http://www.xbrl.org/2003/linkbase" xmlns:xlink="http://www.w3.org/1999/xlink">
<link:calculationLink xlink:type="extended" xlink:role="http://www.xbrl.org/2003/role/link">
%s
</link:calculationLink>
</link:linkbase>"""
LOCATOR = '<link:loc xlink:type="locator" xlink:href="t.xsd#t_%s" xlink:label="%s"/>'
ARC = (
    '<link:calculationArc xlink:type="arc" xlink:arcrole="http://www.xbrl.org/2003/arcrole/summation-item"'
    ' xlink:from="Assets" xlink:to="%s" order="%d" weight="1"/>'
)
FILED = f"""<?xml version="1.0"?>
<xbrli:xbrl xmlns:xbrli="{INSTANCE}" xmlns:link="http://www.xbrl.org/2003/linkbase"
 xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:iso4217="http://www.xbrl.org/2003/iso4217" xmlns:t="http://t.example/">
<link:schemaRef xlink:type="simple" xlink:href="t.xsd"/>
<xbrli:context id="c"><xbrli:entity><xbrli:identifier scheme="http://r.example">1</xbrli:identifier></xbrli:entity>
<xbrli:period><xbrli:instant>2025-12-31</xbrli:instant></xbrli:period></xbrli:context>
<xbrli:unit id="u"><xbrli:measure>iso4217:EUR</xbrli:measure></xbrli:unit>
%s
</xbrli:xbrl>"""
FACT = '<t:%s contextRef="c" unitRef="u" decimals="-3">%d</t:%s>'
NAMES = ("Assets", "Cash", "Stock")


def complaints(assets: int) -> str:
    """What Arelle says of a filing whose items add up to 3,000, give or take their rounding."""
    values = dict(zip(NAMES, (assets, 1000, 2000), strict=True))
    arcs = [LOCATOR % (name, name) for name in NAMES] + [ARC % (name, at) for at, name in enumerate(NAMES[1:], 1)]
    (WORK / "t.xsd").write_text(SCHEMA % "\n".join(ELEMENT % (name, name) for name in NAMES))
    (WORK / "t_cal.xml").write_text(LINKBASE % "\n".join(arcs))
    (WORK / "t.xml").write_text(FILED % "\n".join(FACT % (name, value, name) for name, value in values.items()))
    command = ["arelleCmdLine", "--internetConnectivity", "offline", "--validate", "--calc", "c11r", "--file", "t.xml"]
    run = subprocess.run(
        command, cwd=WORK, check=True, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": "/tmp"}
    )
    lines = (run.stdout + run.stderr).splitlines()
    assert any("validated in" in line for line in lines), f"Arelle did not validate: {lines}"
    return "\n".join(line for line in lines if line.startswith("[") and not line.startswith("[info]"))


assert complaints(3000) == "", complaints(3000)
assert complaints(4000) == "", "a difference that rounding explains is no fault"
wrong = complaints(9000)
assert "calc11e:inconsistentCalculationUsingRounding" in wrong, f"the wrong total was not found: {wrong}"
print("Arelle validates offline, accepts rounding and finds a wrong total")
