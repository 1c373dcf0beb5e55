"""terminal/CHotLoop: cut the instruction count of a C kernel, exactly."""
