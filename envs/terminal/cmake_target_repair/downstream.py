"""Projects that use the package as its consumers would, and what each must report: facts, by name.

Every consumer is an executable that prints what it sees (`name value` lines); what configuring finds out is written
into files of the same form. The expected facts are computed here, on the host, and stay here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .project import Project

_UNIT = """\
#include <<<P>>/<<NAME>>.hpp>
#include <cstdio>
#include <cstdlib>

#ifndef <<P!>>_SALT
#define SALT 0
#else
#define SALT 1
#endif
#ifndef <<P!>>_CHECKED
#define CHECKED 0
#else
#define CHECKED 1
#endif
#if __cplusplus >= 202002L
#define STANDARD 20
#else
#define STANDARD 17
#endif

int main(int count, char **words)
{
    std::printf("unit %d\\nsalt %d\\nchecked %d\\nstandard %d\\n", <<P!>>_UNIT, SALT, CHECKED, STANDARD);
<<SEES>>
    for (int i = 1; i < count; i++)
        std::printf("value_%d %d\\n", i, <<P>>::<<NAME>>(std::atoi(words[i])));
}
"""
_SEES = """\
#if __has_include(<<<P>>/<<OTHER>>.hpp>)
    std::puts("sees_<<OTHER>> 1");
#else
    std::puts("sees_<<OTHER>> 0");
#endif
"""
_TOP = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
"""
_USE = """\
find_package(<<P>> <<major>>.<<minor>> QUIET<<COMPONENTS>>)
set(told "found ${<<P>>_FOUND}\\n")
foreach(name <<NAMES>>)
  if(TARGET <<P>>::${name})
    string(APPEND told "target_${name} 1\\n")
  else()
    string(APPEND told "target_${name} 0\\n")
  endif()
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/facts/use_<<NAME>> "${told}")
if(TARGET <<P>>::<<NAME>>)
  add_executable(use_<<NAME>> main.cpp)
  target_link_libraries(use_<<NAME>> PRIVATE <<P>>::<<NAME>>)
endif()
"""
_ASK = """\
find_package(<<P>> <<VERSION>> QUIET<<COMPONENTS>>)
if(<<P>>_FOUND)
  file(WRITE ${CMAKE_BINARY_DIR}/facts/ask_<<LABEL>> "found 1\\n")
else()
  file(WRITE ${CMAKE_BINARY_DIR}/facts/ask_<<LABEL>> "found 0\\n")
endif()
"""
_VENDORED = """\
cmake_minimum_required(VERSION 3.25)
project(vendoring LANGUAGES CXX)
add_subdirectory(third_party/lib)
set(told "")
if(TARGET <<P>>-demo)
  string(APPEND told "demo 1\\n")
else()
  string(APPEND told "demo 0\\n")
endif()
file(WRITE ${CMAKE_BINARY_DIR}/facts/tree "${told}")
foreach(name <<NAMES>>)
  if(TARGET <<P>>::${name})
    add_executable(use_${name} ${name}.cpp)
    target_link_libraries(use_${name} PRIVATE <<P>>::${name})
  endif()
endforeach()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to build and use the project."""

    name: str
    shared: bool = False
    vendored: bool = False


def variants(project: Project) -> list[Variant]:
    """Every way that was promised."""
    found = [Variant(name="static")]
    if project.shape.shared:
        found.append(Variant(name="shared", shared=True))
    if project.shape.vendored:
        found.append(Variant(name="vendored", vendored=True))
    return found


def package_consumer(project: Project) -> dict[str, str]:
    """The files of a project with one consumer for each library, and questions about versions and components."""
    names = [project.names[role] for role in project.libraries]
    found: dict[str, str] = {}
    folders: list[str] = []
    for role in project.libraries:
        name = project.names[role]
        wanted = f" COMPONENTS {_component(project, role)}" if project.shape.components else ""
        text = _USE.replace("<<COMPONENTS>>", wanted).replace("<<NAMES>>", " ".join(names)).replace("<<NAME>>", name)
        found[f"use_{name}/CMakeLists.txt"] = text
        found[f"use_{name}/main.cpp"] = _unit(project, role)
        folders.append(f"use_{name}")
    for label, version, components in questions(project):
        wanted = f" COMPONENTS {components}" if components else ""
        text = _ASK.replace("<<VERSION>>", version).replace("<<COMPONENTS>>", wanted).replace("<<LABEL>>", label)
        found[f"ask_{label}/CMakeLists.txt"] = text
        folders.append(f"ask_{label}")
    found["CMakeLists.txt"] = _TOP + "".join(f"add_subdirectory({folder})\n" for folder in folders)
    return {path: project.fill(text) for path, text in found.items()}


def vendoring(project: Project) -> dict[str, str]:
    """The files of a project that holds this one in third_party/lib."""
    names = [project.names[role] for role in project.libraries]
    found = {f"{project.names[role]}.cpp": _unit(project, role) for role in project.libraries}
    found["CMakeLists.txt"] = _VENDORED.replace("<<NAMES>>", " ".join(names))
    return {path: project.fill(text) for path, text in found.items()}


def questions(project: Project) -> list[tuple[str, str, str]]:
    """(label, version, components) of what is asked for beside the consumers."""
    major, minor = project.numbers["major"], project.numbers["minor"]
    found = [
        ("older", f"{major}.{minor - 1}", ""),
        ("newer", f"{major}.{minor + 1}", ""),
        ("next", f"{major + 1}", ""),
        ("before", f"{major - 1}", ""),
    ]
    if project.shape.components:
        found.append(("nosuch", f"{major}.{minor}", f"{project.names['core']} nosuch"))
    return found


def _component(project: Project, role: str) -> str:
    return project.names["core" if role == "base" else role]


def _unit(project: Project, role: str) -> str:
    others = [project.names[other] for other in project.shape.roles if other != role]
    sees = "".join(_SEES.replace("<<OTHER>>", other) for other in others)
    return _UNIT.replace("<<SEES>>", sees.rstrip("\n")).replace("<<NAME>>", project.names[role])


def expected(project: Project, inputs: Sequence[int]) -> dict[str, str]:
    """Fact → value: `variant/configuration:subject:name`."""
    facts: dict[str, str] = {}
    for variant in variants(project):
        if variant.vendored:
            facts["vendored/Release:tree:demo"] = "0"
        else:
            facts |= _package_facts(project, variant, inputs)
        for configuration in ("Release",) if variant.vendored else project.shape.consumers:
            debug = configuration == "Debug" and len(project.shape.configurations) > 1
            for role in project.libraries:
                subject = f"{variant.name}/{configuration}:use_{project.names[role]}"
                facts |= {
                    f"{subject}:{name}": value
                    for name, value in _seen(project, role, inputs, configuration, debug=debug).items()
                }
    return facts


def _seen(project: Project, role: str, inputs: Sequence[int], configuration: str, *, debug: bool) -> dict[str, str]:
    checked = configuration == "Debug" and len(project.shape.consumers) > 1 and "core" in project.shows(role)
    seen = {"unit": str(project.numbers["unit"]), "salt": "0", "checked": str(int(checked)), "standard": "20"}
    for other in project.shape.roles:
        if other != role:
            seen[f"sees_{project.names[other]}"] = str(int(other in project.shows(role)))
    for number, x in enumerate(inputs, start=1):
        seen[f"value_{number}"] = str(project.value(role, x, debug=debug))
    return seen


def _package_facts(project: Project, variant: Variant, inputs: Sequence[int]) -> dict[str, str]:
    facts: dict[str, str] = {}
    names = project.names
    for role in project.libraries:
        subject = f"{variant.name}/configure:use_{names[role]}"
        facts[f"{subject}:found"] = "1"
        for other in project.libraries:
            there = not project.shape.components or other in ("base", "core") or other == role
            facts[f"{subject}:target_{names[other]}"] = str(int(there))
    right = {"older": "1", "newer": "0", "next": "0", "before": "0", "nosuch": "0"}
    for label, _, _ in questions(project):
        facts[f"{variant.name}/configure:ask_{label}:found"] = right[label]
    configuration = project.shape.configurations[0]
    debug = configuration == "Debug"
    for role in project.libraries:
        value = project.value(role, inputs[0], debug=debug)
        facts[f"{variant.name}/{configuration}:demo:{names[role]}"] = str(value)
    for role in project.libraries:
        facts[f"{variant.name}/files:include:{names[role]}"] = "1"
        if role != "base":
            for configuration in project.shape.configurations:
                facts[f"{variant.name}/files:{configuration}:{library_file(project, role, variant, configuration)}"] = (
                    "1"
                )
    facts[f"{variant.name}/files:include:{names['detail']}"] = "0"
    return facts


def library_file(project: Project, role: str, variant: Variant, configuration: str) -> str:
    """The installed library's name."""
    postfix = "d" if configuration == "Debug" and len(project.shape.configurations) > 1 else ""
    stem = f"lib{project.names['P']}-{project.names[role]}{postfix}"
    return f"{stem}.so.{project.numbers['major']}" if variant.shared else f"{stem}.a"
