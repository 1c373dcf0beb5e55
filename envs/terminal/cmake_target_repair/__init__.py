"""terminal/CMakeTargetRepair: repair the CMake targets and the package of a generated C++ project."""
