"""The right project: a graph of C++ libraries, its CMake files, its sources, and what it promises to consumers.

Roles are fixed and names are drawn. `base` is header-only; `core` is built on it and hides `detail`, a static helper;
`io` is built on core and on threads; `text` shows base and hides core. Each library keeps its headers in a folder of
its own, in the tree and installed, so that what a consumer sees is exactly what it is entitled to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ...core import Rng

_PROJECTS = ("tessera", "quarry", "lantern", "harbour", "meridian", "juniper", "cobalt", "orchard", "gantry", "mistral")
_NAMES = {
    "base": ("units", "basics", "types", "ground"),
    "core": ("core", "engine", "kernel", "solver"),
    "detail": ("mixing", "tables", "bits", "inner"),
    "io": ("io", "feed", "wire", "stream"),
    "text": ("text", "report", "words", "format"),
}
_DEPENDS = {"base": (), "core": ("base",), "detail": (), "io": ("core", "base"), "text": ("base",)}
"""What a library shows of others: everything that its consumers see as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large the project is and what it offers."""

    roles: tuple[str, ...]
    """In the order of their building."""
    components: bool = False
    """Whether the package has components, each with an export set of its own."""
    shared: bool = False
    """Whether it must work as shared libraries too."""
    configurations: tuple[str, ...] = ("Release",)
    """Those that are installed."""
    consumers: tuple[str, ...] = ("Release",)
    """Those that consumers build."""
    vendored: bool = False
    """Whether it must work by add_subdirectory too."""


@dataclass(frozen=True)
class Project:
    """One drawn project."""

    shape: Shape
    names: Mapping[str, str]
    numbers: Mapping[str, int]

    @classmethod
    def draw(cls, rng: Rng, shape: Shape) -> Project:
        """Names and numbers."""
        names = {role: rng.choice(words) for role, words in _NAMES.items()} | {"P": rng.choice(_PROJECTS)}
        numbers = {
            "unit": rng.integer(3, 19), "salt": rng.integer(100, 999), "a": rng.integer(3, 30),
            "b": rng.integer(3, 30), "c": rng.integer(2, 9), "d": rng.integer(2, 9),
            "debug": rng.integer(2, 9) * 100_000, "major": rng.integer(2, 6), "minor": rng.integer(2, 7),
            "patch": rng.integer(0, 9), "t0": rng.integer(1, 50), "t1": rng.integer(51, 90),
        }  # fmt: skip
        return cls(shape=shape, names=names, numbers=numbers)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Roles of what consumers may link."""
        return tuple(role for role in self.shape.roles if role != "detail")

    @property
    def version(self) -> str:
        """As it is installed."""
        return f"{self.numbers['major']}.{self.numbers['minor']}.{self.numbers['patch']}"

    def fill(self, text: str) -> str:
        """`<<name>>` and `<<number>>` replaced; `<<P!>>` is the project's name in capitals."""
        words: dict[str, str] = {**self.names, **{key: str(value) for key, value in self.numbers.items()}}
        words |= {"P!": self.names["P"].upper(), "version": self.version}
        for key, value in words.items():
            text = text.replace(f"<<{key}>>", value)
        return text

    @cached_property
    def sources(self) -> dict[str, str]:
        """Everything that is not CMake's."""
        found: dict[str, str] = {}
        for role in self.shape.roles:
            name = self.names[role]
            if role != "detail":
                found[f"libs/{name}/include/<<P>>/{name}.hpp"] = _HEADERS[role]
            else:
                found[f"libs/{name}/{name}.hpp"] = _HEADERS[role]
            if role != "base":
                found[f"libs/{name}/{name}.cpp"] = _SOURCES[role]
        lines = [f'    std::printf("<<{role}>> %d\\n", <<P>>::<<{role}>>(x));' for role in self.libraries]
        includes = [f"#include <<<P>>/<<{role}>>.hpp>" for role in self.libraries]
        found["apps/main.cpp"] = "\n".join([*includes, _APP.replace("<<LINES>>", "\n".join(lines))])
        return {self.fill(path): self.fill(text) for path, text in found.items()}

    @cached_property
    def cmake(self) -> dict[str, str]:
        """The right CMake files."""
        shape, roles = self.shape, self.shape.roles
        top = _TOP.replace("<<SUBDIRECTORIES>>", "\n".join(f"add_subdirectory(libs/<<{role}>>)" for role in roles))
        top = top.replace("<<APPS>>", _GUARDED_APPS if shape.vendored else "add_subdirectory(apps)")
        top = top.replace("<<SHARED>>", _OPTION if shape.shared else "").replace(
            "<<THREADS>>", _THREADS if "io" in roles else ""
        )
        found = {"CMakeLists.txt": top, "apps/CMakeLists.txt": _APPS.replace("<<LIBS>>", self._linked(self.libraries))}
        for role in roles:
            found[f"libs/<<{role}>>/CMakeLists.txt"] = self._library(role)
        found["cmake/package.cmake"] = self._package()
        found["cmake/<<P>>-config.cmake.in"] = self._config()
        return {self.fill(path): self.fill(text) for path, text in found.items()}

    def _linked(self, roles: tuple[str, ...]) -> str:
        return " ".join(f"<<P>>::<<{role}>>" for role in roles)

    def _library(self, role: str) -> str:
        text = _LIBRARIES[role]
        extra = ""
        if role in ("core", "io", "text"):
            properties = ["OUTPUT_NAME <<P>>-<<ROLE>>", "EXPORT_NAME <<ROLE>>"]
            if self.shape.shared:
                properties.append("SOVERSION ${PROJECT_VERSION_MAJOR}")
            if len(self.shape.configurations) > 1:
                properties.append("DEBUG_POSTFIX d")
            extra = f"set_target_properties(<<P>>_<<ROLE>> PROPERTIES {' '.join(properties)})\n"
        if role == "core" and len(self.shape.consumers) > 1:
            extra += "target_compile_definitions(<<P>>_<<core>> PUBLIC $<$<CONFIG:Debug>:<<P!>>_CHECKED=1>)\n"
        if role == "detail" and self.shape.shared:
            extra += "set_target_properties(<<P>>_<<detail>> PROPERTIES POSITION_INDEPENDENT_CODE ON)\n"
        if role == "detail" and len(self.shape.configurations) > 1:
            extra += "set_target_properties(<<P>>_<<detail>> PROPERTIES DEBUG_POSTFIX d)\n"
        headers = "" if role == "detail" else _INSTALL_HEADERS
        return (text + extra + headers).replace("<<ROLE>>", f"<<{role}>>")

    @property
    def sets(self) -> dict[str, tuple[str, ...]]:
        """Export set → the roles whose targets are in it; without components there is one."""
        if not self.shape.components:
            return {"targets": self.shape.roles}
        with_core = tuple(role for role in ("base", "core", "detail") if role in self.shape.roles)
        return {"core": with_core} | {role: (role,) for role in ("io", "text") if role in self.shape.roles}

    def _package(self) -> str:
        text = "include(CMakePackageConfigHelpers)\nset(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/<<P>>)\n\n"
        for name, roles in self.sets.items():
            label = f"<<{name}>>-targets" if self.shape.components else "targets"
            targets = " ".join(f"<<P>>_<<{role}>>" for role in roles)
            text += f"install(TARGETS {targets} EXPORT <<P>>-{label})\n"
            text += f"install(EXPORT <<P>>-{label} NAMESPACE <<P>>:: DESTINATION ${{package_dir}})\n"
        return text + _PACKAGE_FILES

    def _config(self) -> str:
        depends = "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n" if "io" in self.shape.roles else ""
        if not self.shape.components:
            return f"@PACKAGE_INIT@\n\n{depends}include(${{CMAKE_CURRENT_LIST_DIR}}/<<P>>-targets.cmake)\n"
        known = " ".join(f"<<{name}>>" for name in self.sets)
        return _COMPONENT_CONFIG.replace("<<KNOWN>>", known)

    @property
    def manual(self) -> str:
        """BUILDING.md."""
        return self.fill(promises(self))

    def shows(self, role: str) -> frozenset[str]:
        """The roles whose headers a consumer of `role` sees."""
        return frozenset({role, *_DEPENDS[role]})

    def value(self, role: str, x: int, *, debug: bool) -> int:
        """What the library's function gives; `debug` of the libraries, not of the consumer."""
        n = self.numbers
        extra = n["debug"] if debug else 0
        table = [n["t0"], n["t1"], n["t0"] + n["t1"], n["t1"] - n["t0"]]
        match role:
            case "base":
                return x * n["unit"]
            case "core":
                return x * n["unit"] + x * n["a"] + table[x % 4] + n["salt"] + extra
            case "io":
                return self.value("core", x, debug=debug) * n["c"] + n["b"] + extra
            case _:
                return self.value("core", x, debug=debug) + n["d"] * n["unit"] + extra


_HEADERS = {
    "base": """\
#pragma once
#ifndef <<P!>>_UNIT
#error "<<P!>>_UNIT comes with the target <<P>>::<<base>>"
#endif

namespace <<P>> {
inline constexpr int unit = <<P!>>_UNIT;
inline int <<base>>(int x) { return x * unit; }
}
""",
    "core": """\
#pragma once
#include <<<P>>/<<base>>.hpp>

namespace <<P>> {
int <<core>>(int x);
}
""",
    "detail": """\
#pragma once

namespace <<P>>::<<detail>> {
extern int table[4];
int mix(int x);
}
""",
    "io": """\
#pragma once
#include <<<P>>/<<core>>.hpp>

namespace <<P>> {
int <<io>>(int x);
}
""",
    "text": """\
#pragma once
#include <<<P>>/<<base>>.hpp>

namespace <<P>> {
int <<text>>(int x);
}
""",
}
_DEBUG = """\
#ifdef NDEBUG
static const int extra = 0;
#else
static const int extra = <<debug>>;
#endif
"""
_SOURCES = {
    "core": f"""\
#include <<<P>>/<<core>>.hpp>
#include "<<detail>>.hpp"

{_DEBUG}
int <<P>>::<<core>>(int x) {{ return <<base>>(x) + <<detail>>::mix(x) + <<P!>>_SALT + extra; }}
""",
    "detail": """\
#include "<<detail>>.hpp"

int <<P>>::<<detail>>::table[4] = {<<t0>>, <<t1>>, <<t0>> + <<t1>>, <<t1>> - <<t0>>};

int <<P>>::<<detail>>::mix(int x) { return x * <<a>> + table[x % 4]; }
""",
    "io": f"""\
#include <<<P>>/<<io>>.hpp>
#include <pthread.h>

{_DEBUG}
static void *work(void *x)
{{
    *static_cast<int *>(x) = <<P>>::<<core>>(*static_cast<int *>(x));
    return nullptr;
}}

int <<P>>::<<io>>(int x)
{{
    pthread_t thread;
    pthread_create(&thread, nullptr, work, &x);
    pthread_join(thread, nullptr);
    return x * <<c>> + <<b>> + extra;
}}
""",
    "text": f"""\
#include <<<P>>/<<text>>.hpp>
#include <<<P>>/<<core>>.hpp>

{_DEBUG}
int <<P>>::<<text>>(int x) {{ return <<core>>(x) + <<d>> * unit + extra; }}
""",
}
_APP = """\
#include <cstdio>
#include <cstdlib>

int main(int, char **words)
{
    int x = std::atoi(words[1]);
<<LINES>>
}
"""
_TOP = """\
cmake_minimum_required(VERSION 3.25)
project(<<P>> VERSION <<version>> LANGUAGES CXX)

<<SHARED>>set(CMAKE_CXX_EXTENSIONS OFF)
include(GNUInstallDirs)
<<THREADS>>
<<SUBDIRECTORIES>>
<<APPS>>

include(cmake/package.cmake)
"""
_OPTION = """\
option(BUILD_SHARED_LIBS "Build <<P>> as shared libraries" OFF)
set(CMAKE_INSTALL_RPATH "$ORIGIN")
"""
_THREADS = "find_package(Threads REQUIRED)\n"
_GUARDED_APPS = "if(PROJECT_IS_TOP_LEVEL)\n  add_subdirectory(apps)\nendif()"
_APPS = "add_executable(<<P>>-demo main.cpp)\ntarget_link_libraries(<<P>>-demo PRIVATE <<LIBS>>)\n"
_INCLUDES = """\
target_include_directories(<<P>>_<<ROLE>> <<SCOPE>>
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/<<P>>-<<ROLE>>>)
"""
_PUBLIC_INCLUDES = _INCLUDES.replace("<<SCOPE>>", "PUBLIC")
_INSTALL_HEADERS = "install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/<<P>>-<<ROLE>>)\n"
_LIBRARIES = {
    "base": "add_library(<<P>>_<<base>> INTERFACE)\nadd_library(<<P>>::<<base>> ALIAS <<P>>_<<base>>)\n"
    + _INCLUDES.replace("<<SCOPE>>", "INTERFACE")
    + "target_compile_definitions(<<P>>_<<base>> INTERFACE <<P!>>_UNIT=<<unit>>)\n"
    "target_compile_features(<<P>>_<<base>> INTERFACE cxx_std_20)\n"
    "set_target_properties(<<P>>_<<base>> PROPERTIES EXPORT_NAME <<base>>)\n",
    "core": "add_library(<<P>>_<<core>> <<core>>.cpp)\nadd_library(<<P>>::<<core>> ALIAS <<P>>_<<core>>)\n"
    + _PUBLIC_INCLUDES
    + "target_compile_definitions(<<P>>_<<core>> PRIVATE <<P!>>_SALT=<<salt>>)\n"
    "target_link_libraries(<<P>>_<<core>> PUBLIC <<P>>_<<base>> PRIVATE <<P>>_<<detail>>)\n",
    "detail": "add_library(<<P>>_<<detail>> STATIC <<detail>>.cpp)\n"
    "target_include_directories(<<P>>_<<detail>> PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>)\n"
    "target_compile_features(<<P>>_<<detail>> PRIVATE cxx_std_20)\n"
    "set_target_properties(<<P>>_<<detail>> PROPERTIES OUTPUT_NAME <<P>>-<<detail>>)\n",
    "io": "add_library(<<P>>_<<io>> <<io>>.cpp)\nadd_library(<<P>>::<<io>> ALIAS <<P>>_<<io>>)\n"
    + _PUBLIC_INCLUDES
    + "target_link_libraries(<<P>>_<<io>> PUBLIC <<P>>_<<core>> Threads::Threads)\n",
    "text": "add_library(<<P>>_<<text>> <<text>>.cpp)\nadd_library(<<P>>::<<text>> ALIAS <<P>>_<<text>>)\n"
    + _PUBLIC_INCLUDES
    + "target_link_libraries(<<P>>_<<text>> PUBLIC <<P>>_<<base>> PRIVATE <<P>>_<<core>>)\n",
}
_PACKAGE_FILES = """
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/<<P>>-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/<<P>>-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/<<P>>-config-version.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/<<P>>-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/<<P>>-config-version.cmake DESTINATION ${package_dir})
"""
_COMPONENT_CONFIG = """\
@PACKAGE_INIT@

set(_known <<KNOWN>>)
set(_wanted ${<<P>>_FIND_COMPONENTS})
if(NOT _wanted)
  set(_wanted ${_known})
endif()
# every component needs this one, so it comes first
list(PREPEND _wanted <<core>>)
list(REMOVE_DUPLICATES _wanted)

if("<<io>>" IN_LIST _wanted)
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
endif()

foreach(_component IN LISTS _wanted)
  if(_component IN_LIST _known)
    include(${CMAKE_CURRENT_LIST_DIR}/<<P>>-${_component}-targets.cmake)
    set(<<P>>_${_component}_FOUND TRUE)
  endif()
endforeach()
check_required_components(<<P>>)
"""


def promises(project: Project) -> str:
    """What consumers were told, as a template."""
    shape = project.shape
    rows = []
    for role in project.libraries:
        seen = sorted(project.names[other] for other in project.shows(role) - {role})
        shows = f"; its consumers see {', '.join(f'`<<P>>::{name}`' for name in seen)} too" if seen else ""
        rows.append(f"- `<<P>>::<<{role}>>`, header `<<<P>>/<<{role}>>.hpp>`{shows}")
    text = _PROMISES.replace("<<ROWS>>", "\n".join(rows))
    if "io" in shape.roles:
        text += (
            "- `<<P>>::<<io>>` is linked with `Threads::Threads`, and so are its consumers; the package finds it for "
            "them\n"
        )
    if "text" in shape.roles:
        text += "- `<<P>>::<<text>>` uses `<<core>>` inside only\n"
    if shape.shared:
        text += (
            "- with `BUILD_SHARED_LIBS=ON` all libraries but `<<detail>>` are shared, with the major version as their "
            "SOVERSION (`lib/lib<<P>>-<<core>>.so.<<major>>`); with `OFF`, the default, all are static. "
            "Installed, the shared libraries find one another wherever they are\n"
        )
    if shape.components:
        names = ", ".join(f"`<<{name}>>`" for name in project.sets)
        text += (
            f"- components: {names}. `<<core>>` brings `<<P>>::<<core>>` and `<<P>>::<<base>>` and comes with every "
            "other; the others bring the target of their name. Only what was asked for is defined, with no component "
            "named it is all; a required component that does not exist makes the package not found\n"
        )
    if len(shape.consumers) > 1:
        text += (
            "- `<<P!>>_CHECKED=1` is defined for `<<P>>::<<core>>` and its consumers when, and only when, they are "
            "themselves compiled in the configuration Debug, whatever was installed\n"
        )
    if len(shape.configurations) > 1:
        text += (
            "- Debug and Release are installed into one prefix, the Debug libraries with a `d` at the end of their "
            "names; consumers in Debug get these, others the Release ones\n"
        )
    if shape.vendored:
        text += (
            "- the project can be added by `add_subdirectory`, from a subfolder of any name: the same target names "
            "work then, and nothing of `apps/` is built\n"
        )
    return text


_PROMISES = """\
# Building <<P>>, and what its package promises

    cmake -G Ninja -S . -B build -DCMAKE_INSTALL_PREFIX=PREFIX && cmake --build build && cmake --install build

builds, and `build/apps/<<P>>-demo 5` runs. `find_package(<<P>> <<major>>.<<minor>>)` in another project then gives

<<ROWS>>

- linking a target is all a consumer does: include folders, C++20, and `<<P!>>_UNIT=<<unit>>` come with it. What a
  library only uses inside reaches no consumer: neither headers nor definitions (`<<P!>>_SALT` is such a one)
- the headers of each library are installed in a folder of its own, `include/<<P>>-NAME`; those of `<<detail>>` are not
- the installed tree can be moved anywhere; it needs neither sources nor build tree
- the version is <<version>>; the same major version in this or any lower minor version is compatible, nothing else is
"""
