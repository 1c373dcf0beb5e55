"""What can be wrong with the CMake files: each fault is a change of the right text, and the facts that it spoils.

A fault names at least the facts that it spoils; those that no planted fault names were right before, and must stay so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .project import Project, Shape


class Change(NamedTuple):
    """A text of one file, unique in it, and what stands there instead; both are filled with the project's names."""

    path: str
    right: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault."""

    name: str
    report: str
    """What somebody saw; a template."""
    hint: str
    """What is at fault; told at the lowest level only."""
    changes: tuple[Change, ...]
    spoils: str
    """A regular expression, from the start, over the names of facts; a template."""
    needs: Callable[[Shape], bool] = lambda shape: True
    other: tuple[Change, ...] = ()
    """Another right way to write what the changes touch."""


_TOP, _PACKAGE, _CONFIG = "CMakeLists.txt", "cmake/package.cmake", "cmake/<<P>>-config.cmake.in"
_BASE, _CORE, _IO, _TEXT = (f"libs/<<{role}>>/CMakeLists.txt" for role in ("base", "core", "io", "text"))
_DETAIL = "libs/<<detail>>/CMakeLists.txt"
_ALL = ".*"


def _has(*roles: str) -> Callable[[Shape], bool]:
    return lambda shape: all(role in shape.roles for role in roles)


def _interfaces(role: str) -> tuple[str, str]:
    build = "\n  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>"
    return build, f"\n  $<INSTALL_INTERFACE:${{CMAKE_INSTALL_INCLUDEDIR}}/<<P>>-<<{role}>>>"


_CORE_BUILD, _CORE_INSTALLED = _interfaces("core")
FAULTS: tuple[Fault, ...] = (
    Fault(
        name="includes kept private",
        report="the demo does not compile: `<<P>>/<<core>>.hpp: No such file or directory`",
        hint="what `<<P>>::<<core>>` asks of its consumers",
        changes=(
            Change(
                _CORE,
                f"target_include_directories(<<P>>_<<core>> PUBLIC{_CORE_BUILD}",
                f"target_include_directories(<<P>>_<<core>> PRIVATE{_CORE_BUILD}",
            ),
        ),
        spoils=_ALL,
    ),
    Fault(
        name="base kept private",
        report="consumers of `<<P>>::<<core>>` do not compile: `<<P>>/<<base>>.hpp: No such file or directory`",
        hint="which of its libraries `<<P>>::<<core>>` hands on",
        changes=(
            Change(_CORE, "PUBLIC <<P>>_<<base>> PRIVATE <<P>>_<<detail>>", "PRIVATE <<P>>_<<base>> <<P>>_<<detail>>"),
        ),
        spoils=r"\w+/(Debug|Release):use_(<<core>>|<<io>>)",
        other=(
            Change(
                _CORE,
                "target_link_libraries(<<P>>_<<core>> PUBLIC <<P>>_<<base>> PRIVATE <<P>>_<<detail>>)",
                "target_link_libraries(<<P>>_<<core>> PUBLIC <<P>>::<<base>>)\n"
                "target_link_libraries(<<P>>_<<core>> PRIVATE $<BUILD_INTERFACE:<<P>>_<<detail>>> "
                "$<INSTALL_INTERFACE:<<P>>::<<detail>>>)",
            ),
            Change(_DETAIL, "OUTPUT_NAME <<P>>-<<detail>>", "OUTPUT_NAME <<P>>-<<detail>> EXPORT_NAME <<detail>>"),
        ),
    ),
    Fault(
        name="nothing for the installed headers",
        report="consumers of the installed `<<P>>::<<core>>` do not find `<<P>>/<<core>>.hpp`",
        hint="the include folders of `<<P>>::<<core>>` once it is installed",
        changes=(Change(_CORE, _CORE_INSTALLED, ""),),
        spoils=r"\w+/(Debug|Release):use_(<<core>>|<<io>>)",
        other=(
            Change(_CORE, _CORE_INSTALLED, ""),
            Change(
                _PACKAGE,
                "include(CMakePackageConfigHelpers)",
                "include(CMakePackageConfigHelpers)\ntarget_include_directories(<<P>>_<<core>> INTERFACE\n"
                f"  {_CORE_INSTALLED.strip()})",
            ),
        ),
    ),
    Fault(
        name="headers not installed",
        report="the installed tree has no `<<P>>/<<base>>.hpp`",
        hint="what is installed of `<<base>>`",
        changes=(
            Change(_BASE, "install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/<<P>>-<<base>>)\n", ""),
        ),
        spoils=r"\w+/((Debug|Release):use_|configure:(use|ask)|files:include:<<base>>)",
        other=(
            Change(
                _BASE,
                "install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/<<P>>-<<base>>)\n",
                "install(FILES include/<<P>>/<<base>>.hpp\n"
                "  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/<<P>>-<<base>>/<<P>>)\n",
            ),
        ),
    ),
    Fault(
        name="headers in another folder",
        report="consumers of the installed package do not compile: `<<P>>/<<base>>.hpp` lies where nobody looks",
        hint="where the headers of `<<base>>` are installed",
        changes=(Change(_BASE, "install(DIRECTORY include/ DESTINATION", "install(DIRECTORY include DESTINATION"),),
        spoils=r"\w+/((Debug|Release):use_|files:include:<<base>>)",
    ),
    Fault(
        name="definition only in the tree",
        report="consumers of the installed package stop at `#error`: `<<P!>>_UNIT` is not there",
        hint="the definitions of `<<P>>::<<base>>` once it is installed",
        changes=(Change(_BASE, "INTERFACE <<P!>>_UNIT=<<unit>>", "INTERFACE $<BUILD_INTERFACE:<<P!>>_UNIT=<<unit>>>"),),
        spoils=r"\w+/(Debug|Release):use_",
        other=(Change(_BASE, "INTERFACE <<P!>>_UNIT=<<unit>>", "INTERFACE $<1:<<P!>>_UNIT=<<unit>>>"),),
    ),
    Fault(
        name="package in an unsearched folder",
        report="`find_package(<<P>>)` does not find what was installed",
        hint="where the package's own files are installed",
        changes=(
            Change(
                _PACKAGE,
                "set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/<<P>>)",
                "set(package_dir ${CMAKE_INSTALL_DATADIR}/packages/<<P>>)",
            ),
        ),
        spoils=r"\w+/((Debug|Release):use_|configure:)",
        other=(
            Change(
                _PACKAGE, "set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/<<P>>)", "set(package_dir share/cmake/<<P>>)"
            ),
        ),
    ),
    Fault(
        name="name of the target",
        report="the package defines no `<<P>>::<<core>>`",
        hint="the name under which `<<P>>_<<core>>` is exported",
        changes=(Change(_CORE, " EXPORT_NAME <<core>>", ""),),
        spoils=r"\w+/((Debug|Release):use_<<core>>|configure:use_\w+:target_<<core>>)",
    ),
    Fault(
        name="namespace forgotten",
        report="nothing of what the package should define is there under its `<<P>>::` name",
        hint="how the package's targets are exported",
        changes=(
            Change(
                _PACKAGE,
                "install(EXPORT <<P>>-targets NAMESPACE <<P>>:: DESTINATION",
                "install(EXPORT <<P>>-targets DESTINATION",
            ),
        ),
        spoils=r"\w+/((Debug|Release):use_|configure:use_)",
        needs=lambda shape: not shape.components,
    ),
    Fault(
        name="helper not exported",
        report="configuring fails: an export set lacks `<<P>>_<<detail>>`",
        hint="the export set",
        changes=(Change(_PACKAGE, " <<P>>_<<detail>>", ""),),
        spoils=_ALL,
    ),
    Fault(
        name="any version is good",
        report="consumers that ask for another major version get this one",
        hint="which versions are compatible",
        changes=(Change(_PACKAGE, "SameMajorVersion", "AnyNewerVersion"),),
        spoils=r"\w+/configure:ask_before",
        needs=_has("io"),
    ),
    Fault(
        name="only this minor version",
        report="consumers that ask for an older minor version are refused",
        hint="which versions are compatible",
        changes=(Change(_PACKAGE, "SameMajorVersion", "SameMinorVersion"),),
        spoils=r"\w+/configure:ask_older",
    ),
    Fault(
        name="threads not found again",
        report="consumers' configuring fails at generation: a target `Threads::Threads` is not found",
        hint="what the package must find itself",
        changes=(Change(_CONFIG, "find_dependency(Threads)", "# Threads"),),
        spoils=r"\w+/((Debug|Release):use_|configure:)",
        needs=_has("io"),
        other=(Change(_CONFIG, "find_dependency(Threads)", "find_package(Threads QUIET REQUIRED)"),),
    ),
    Fault(
        name="inside handed on",
        report="consumers of `<<P>>::<<text>>` alone see headers that are none of their business",
        hint="what `<<P>>::<<text>>` hands on",
        changes=(
            Change(_TEXT, "PUBLIC <<P>>_<<base>> PRIVATE <<P>>_<<core>>", "PUBLIC <<P>>_<<base>> <<P>>_<<core>>"),
        ),
        spoils=r"\w+/(Debug|Release):use_<<text>>:(sees_<<core>>|checked)",
        needs=_has("text"),
    ),
    Fault(
        name="salt handed on",
        report="a definition that is only for the inside of `<<core>>` turns up in consumers",
        hint="the definitions of `<<P>>::<<core>>`",
        changes=(Change(_CORE, "PRIVATE <<P!>>_SALT", "PUBLIC <<P!>>_SALT"),),
        spoils=r"\w+/(Debug|Release):use_\w+:salt",
    ),
    Fault(
        name="standard not handed on",
        report="consumers are compiled as C++17",
        hint="the language standard that `<<P>>::<<base>>` asks for",
        changes=(
            Change(_BASE, "target_compile_features(<<P>>_<<base>> INTERFACE cxx_std_20)\n", ""),
            Change(_TOP, "set(CMAKE_CXX_EXTENSIONS OFF)", "set(CMAKE_CXX_EXTENSIONS OFF)\nset(CMAKE_CXX_STANDARD 20)"),
        ),
        spoils=r"(\w+/(Debug|Release):use_\w+:standard|vendored)",
    ),
    Fault(
        name="helper without position-independent code",
        report="linking the shared libraries fails: `recompile with -fPIC`",
        hint="how `<<detail>>` is compiled",
        changes=(
            Change(_DETAIL, "set_target_properties(<<P>>_<<detail>> PROPERTIES POSITION_INDEPENDENT_CODE ON)\n", ""),
        ),
        spoils="shared/",
        needs=lambda shape: shape.shared,
        other=(
            Change(
                _DETAIL,
                "set_target_properties(<<P>>_<<detail>> PROPERTIES POSITION_INDEPENDENT_CODE ON)\n",
                "target_compile_options(<<P>>_<<detail>> PRIVATE -fPIC)\n",
            ),
        ),
    ),
    Fault(
        name="static for ever",
        report="with BUILD_SHARED_LIBS=ON, `<<core>>` is still a static library",
        hint="the kind of `<<P>>_<<core>>`",
        changes=(
            Change(
                _CORE, "add_library(<<P>>_<<core>> <<core>>.cpp)", "add_library(<<P>>_<<core>> STATIC <<core>>.cpp)"
            ),
        ),
        spoils="shared/",
        needs=lambda shape: shape.shared,
    ),
    Fault(
        name="whole version in the name",
        report="programs linked with the shared `<<core>>` stop working at every patch release",
        hint="the SOVERSION of `<<P>>_<<core>>`",
        changes=(Change(_CORE, "SOVERSION ${PROJECT_VERSION_MAJOR}", "SOVERSION ${PROJECT_VERSION}"),),
        spoils=r"shared/files:",
        needs=lambda shape: shape.shared,
    ),
    Fault(
        name="libraries lose one another",
        report="programs that use the installed shared `<<io>>` do not start: `lib<<P>>-<<core>>.so` is not found",
        hint="the run path of what is installed",
        changes=(Change(_TOP, 'set(CMAKE_INSTALL_RPATH "$ORIGIN")\n', ""),),
        spoils=r"shared/(Debug|Release):use_",
        needs=lambda shape: shape.shared,
        other=(
            Change(
                _TOP,
                'set(CMAKE_INSTALL_RPATH "$ORIGIN")\n',
                'if(BUILD_SHARED_LIBS)\n  set(CMAKE_INSTALL_RPATH "\\${ORIGIN}")\nendif()\n',
            ),
        ),
    ),
    Fault(
        name="decided at configuring",
        report="`<<P!>>_CHECKED` does not follow the configuration in which a consumer is compiled",
        hint="the definitions of `<<P>>::<<core>>`",
        changes=(
            Change(
                _CORE,
                "target_compile_definitions(<<P>>_<<core>> PUBLIC $<$<CONFIG:Debug>:<<P!>>_CHECKED=1>)\n",
                'if(CMAKE_BUILD_TYPE STREQUAL "Debug")\n'
                "  target_compile_definitions(<<P>>_<<core>> PUBLIC <<P!>>_CHECKED=1)\nendif()\n",
            ),
        ),
        spoils=r"\w+/Debug:use_\w+:checked",
        needs=lambda shape: len(shape.consumers) > 1,
        other=(Change(_CORE, "$<$<CONFIG:Debug>:<<P!>>_CHECKED=1>", "$<IF:$<CONFIG:Debug>,<<P!>>_CHECKED=1,>"),),
    ),
    Fault(
        name="the other configuration",
        report="`<<P!>>_CHECKED` is defined in consumers where it should not be, and the other way round",
        hint="the definitions of `<<P>>::<<core>>`",
        changes=(Change(_CORE, "$<$<CONFIG:Debug>:<<P!>>_CHECKED=1>", "$<$<NOT:$<CONFIG:Debug>>:<<P!>>_CHECKED=1>"),),
        spoils=r"\w+/(Debug|Release):use_\w+:checked",
        needs=lambda shape: len(shape.consumers) > 1,
    ),
    Fault(
        name="components not checked",
        report="a component that does not exist is found",
        hint="the package's configuration file",
        changes=(Change(_CONFIG, "check_required_components(<<P>>)\n", "set(<<P>>_FOUND TRUE)\n"),),
        spoils=r"\w+/configure:ask_nosuch",
        needs=lambda shape: shape.components,
        other=(
            Change(
                _CONFIG,
                "check_required_components(<<P>>)\n",
                "foreach(_component IN LISTS <<P>>_FIND_COMPONENTS)\n"
                "  if(<<P>>_FIND_REQUIRED_${_component} AND NOT <<P>>_${_component}_FOUND)\n"
                "    set(<<P>>_FOUND FALSE)\n  endif()\nendforeach()\n",
            ),
        ),
    ),
    Fault(
        name="component without its ground",
        report="asking for the component `<<io>>` alone fails",
        hint="the package's configuration file",
        changes=(Change(_CONFIG, "list(PREPEND _wanted <<core>>)\n", ""),),
        spoils=r"\w+/((Debug|Release):use_|configure:)",
        needs=lambda shape: shape.components,
    ),
    Fault(
        name="all components always",
        report="asking for one component defines the targets of all",
        hint="the package's configuration file",
        changes=(
            Change(_CONFIG, "foreach(_component IN LISTS _wanted)", "foreach(_component IN LISTS _known)"),
            Change(_CONFIG, 'if("<<io>>" IN_LIST _wanted)', "if(TRUE)"),
        ),
        spoils=r"\w+/configure:(use_\w+:target_|ask_nosuch)",
        needs=lambda shape: shape.components,
    ),
    Fault(
        name="one name for both configurations",
        report="consumers in Debug get the Release library of `<<io>>`, or the other way round",
        hint="the names of the libraries of `<<io>>`",
        changes=(Change(_IO, " DEBUG_POSTFIX d", ""),),
        spoils=r"\w+/((Debug|Release):use_<<io>>|files:)",
        needs=lambda shape: len(shape.configurations) > 1,
    ),
    Fault(
        name="top folder taken for granted",
        report="as a part of another project it does not configure",
        hint="paths",
        changes=(
            Change(
                _PACKAGE,
                "${CMAKE_CURRENT_LIST_DIR}/<<P>>-config.cmake.in",
                "${CMAKE_SOURCE_DIR}/cmake/<<P>>-config.cmake.in",
            ),
        ),
        spoils="vendored/",
        needs=lambda shape: shape.vendored,
        other=(
            Change(
                _PACKAGE,
                "${CMAKE_CURRENT_LIST_DIR}/<<P>>-config.cmake.in",
                "${PROJECT_SOURCE_DIR}/cmake/<<P>>-config.cmake.in",
            ),
        ),
    ),
    Fault(
        name="alias forgotten",
        report="as a part of another project it offers no `<<P>>::<<text>>`",
        hint="the name of `<<P>>_<<text>>` in the tree",
        changes=(
            Change(_TEXT, "add_library(<<P>>::<<text>> ALIAS <<P>>_<<text>>)\n", ""),
            Change("apps/CMakeLists.txt", "<<P>>::<<text>>", "<<P>>_<<text>>"),
        ),
        spoils="vendored/",
        needs=lambda shape: shape.vendored,
    ),
    Fault(
        name="demo in other people's builds",
        report="as a part of another project it builds its demo too",
        hint="when `apps` is part of the build",
        changes=(
            Change(_TOP, "if(PROJECT_IS_TOP_LEVEL)\n  add_subdirectory(apps)\nendif()", "add_subdirectory(apps)"),
        ),
        spoils="vendored/Release:tree",
        needs=lambda shape: shape.vendored,
        other=(Change(_TOP, "if(PROJECT_IS_TOP_LEVEL)", "if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)"),),
    ),
)


def apply(project: Project, files: dict[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """The files with these changes.

    Raises:
        ValueError: a text to change does not occur exactly once.
    """
    changed = dict(files)
    for path, right, wrong in changes:
        path, right, wrong = project.fill(path), project.fill(right), project.fill(wrong)
        if changed[path].count(right) != 1:
            raise ValueError(f"{path}: {right!r} occurs {changed[path].count(right)} times")
        changed[path] = changed[path].replace(right, wrong)
    return changed


def planted(project: Project, faults: Sequence[Fault]) -> dict[str, str]:
    """The right files with these faults."""
    files = project.cmake
    for fault in faults:
        files = apply(project, files, fault.changes)
    return files
