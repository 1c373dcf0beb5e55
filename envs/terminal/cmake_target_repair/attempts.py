"""Solutions of one instance, right and wrong, as tool calls made from the project and its faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core import ToolCall
from ...parts.hunks import hunks
from .faults import Fault, apply, planted
from .project import Project

_SUBMIT = ToolCall(tool="submit")
_GLOBAL = """
# everything for everybody
include_directories(${CMAKE_CURRENT_LIST_DIR}/../../../include)
file(GLOB _all ${CMAKE_CURRENT_LIST_DIR}/../../../include/*)
include_directories(${_all})
add_definitions(-D<<P!>>_UNIT=<<unit>>)
foreach(_name <<NAMES>>)
  if(NOT TARGET <<P>>::${_name})
    add_library(<<P>>::${_name} INTERFACE IMPORTED)
  endif()
endforeach()
set(<<P>>_FOUND TRUE)
"""
_PREBUILT = """
set_target_properties(<<P>>_<<core>> PROPERTIES EXCLUDE_FROM_ALL ON)
add_library(<<P>>_prebuilt STATIC IMPORTED)
set_target_properties(<<P>>_prebuilt PROPERTIES IMPORTED_LOCATION ${CMAKE_CURRENT_SOURCE_DIR}/prebuilt/lib<<P>>.a)
target_link_libraries(<<P>>_<<core>> PRIVATE <<P>>_prebuilt)
"""


def oracle(project: Project, faults: Sequence[Fault]) -> list[ToolCall]:
    """Read, try the documented build, mend, build again, submit."""
    before, after = planted(project, faults), project.cmake
    changed = [path for path in after if before[path] != after[path]]
    look = _shell(f"cat BUILDING.md {' '.join(changed)}")
    build = _shell(
        "(cmake -G Ninja -S . -B /tmp/build -DCMAKE_INSTALL_PREFIX=/tmp/prefix && cmake --build /tmp/build "
        "&& cmake --install /tmp/build) > /tmp/log 2>&1; echo $?; tail -n 12 /tmp/log; "
        "rm -rf /tmp/build /tmp/prefix",
    )
    return [look, build, *_edits(before, after), build, _SUBMIT]


def alternatives(project: Project, faults: Sequence[Fault]) -> dict[str, Sequence[ToolCall]]:
    """Other right words where some are known, and the package's folder given outright."""
    files = project.cmake
    for fault in faults:
        files = apply(project, files, fault.other)
    top = "CMakeLists.txt"
    outright = "list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)\ninclude(package)"
    files[top] = files[top].replace("include(cmake/package.cmake)", outright)
    return {"in_other_words": [*_written(planted(project, faults), files), _SUBMIT]}


def mutants(project: Project, faults: Sequence[Fault]) -> dict[str, Sequence[ToolCall]]:
    """Near misses and tricks, none of which makes the package what it promises."""
    before, right = planted(project, faults), project.cmake
    config = project.fill("cmake/<<P>>-config.cmake.in")
    core = project.fill("libs/<<core>>/CMakeLists.txt")
    names = " ".join(project.names[role] for role in project.libraries)
    unit = "s/#error.*/#define <<P!>>_UNIT <<unit>>/"
    salted = right[core].replace(project.fill("PRIVATE <<P!>>_SALT"), project.fill("PUBLIC <<P!>>_SALT"))
    linked = {core: before[core] + project.fill(_PREBUILT)}
    everything = {config: before[config] + project.fill(_GLOBAL.replace("<<NAMES>>", names))}
    shipped = _shell(
        project.fill(
            "mkdir -p libs/<<core>>/prebuilt && g++ -std=c++20 -O2 -c -D<<P!>>_SALT=<<salt>> -D<<P!>>_UNIT=<<unit>> "
            "-DNDEBUG -Ilibs/<<base>>/include -Ilibs/<<core>>/include -Ilibs/<<detail>> libs/<<core>>/<<core>>.cpp "
            "-o /tmp/x.o && ar rcs libs/<<core>>/prebuilt/lib<<P>>.a /tmp/x.o"
        )
    )
    found: dict[str, Sequence[ToolCall]] = {
        "everything_for_everybody": [*_written(before, {**before, **everything}), _SUBMIT],
        "prebuilt_library": [shipped, *_written(before, {**before, **linked}), _SUBMIT],
        "headers_edited": [
            _shell(project.fill(f"sed -i '{unit}' libs/<<base>>/include/<<P>>/<<base>>.hpp")),
            _SUBMIT,
        ],
        "repaired_but_not_movable": [*_written(before, {**right, core: _fixed_path(project, right[core])}), _SUBMIT],
        "salt_for_all": [*_written(before, {**right, core: salted}), _SUBMIT],
    }
    if len(faults) > 1:
        found["one_left"] = [*_written(before, planted(project, faults[-1:])), _SUBMIT]
    return found


def _fixed_path(project: Project, text: str) -> str:
    where = project.fill("${CMAKE_INSTALL_INCLUDEDIR}/<<P>>-<<core>>>)")
    return text.replace(where, project.fill("${CMAKE_INSTALL_FULL_INCLUDEDIR}/<<P>>-<<core>>>)"))


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def _edits(before: Mapping[str, str], after: Mapping[str, str]) -> list[ToolCall]:
    return [
        ToolCall(tool="edit", arguments={"path": path, "old": hunk.old, "new": hunk.new})
        for path in after
        if before[path] != after[path]
        for hunk in hunks(before[path], after[path])
    ]


def _written(before: Mapping[str, str], after: Mapping[str, str]) -> list[ToolCall]:
    return [
        _shell(f"cat > {path} <<'END_OF_FILE'\n{after[path]}END_OF_FILE")
        for path in after
        if after[path] != before[path]
    ]
