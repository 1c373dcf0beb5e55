"""cad/PartToDxf: the flat drawing of a part that came as STEP."""
