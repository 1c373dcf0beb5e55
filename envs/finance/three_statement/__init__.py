"""finance/ThreeStatement: build a linked three-statement model as a live workbook."""
