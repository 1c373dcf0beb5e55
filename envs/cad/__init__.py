"""CAD: mechanical parts, modelled and measured as boundary representations."""
