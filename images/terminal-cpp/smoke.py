"""The trade's real work once: a package built, installed and found by CMake; faults found by Valgrind, the address
sanitizer and GDB; instructions counted by Callgrind."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

WORK = Path("/workspace")
LIBRARY = {
    "lib/CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.25)
project(adder VERSION 1.2.3 LANGUAGES CXX)
add_library(adder STATIC adder.cpp)
target_include_directories(adder PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
install(TARGETS adder EXPORT adder)
install(FILES adder.hpp DESTINATION include)
install(EXPORT adder DESTINATION lib/cmake/adder FILE adder-config.cmake NAMESPACE adder::)
""",
    "lib/adder.hpp": "int add(int, int);\n",
    "lib/adder.cpp": """\
#include "adder.hpp"
#include <map>
int add(int a, int b) { return std::map<int, int>{{a, b}}[a] + a; }
""",
    "app/CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES CXX)
find_package(adder REQUIRED)
add_executable(app main.cpp)
target_link_libraries(app PRIVATE adder::adder)
""",
    "app/main.cpp": '#include <adder.hpp>\n#include <cstdio>\nint main() { std::printf("%d\\n", add(40, 2)); }\n',
}
FAULTY = """\
#include <stdlib.h>
#include <string.h>
int last(const int *p, int n) { return p[n]; }
int main(void) {
    int *p = malloc(4 * sizeof *p);
    memset(p, 0, 4 * sizeof *p);
    int seen = last(p, 4);
    return seen == 12345;
}
"""
COUNTED = """\
#include <stdint.h>
#include <stdlib.h>
__attribute__((noinline)) uint32_t work(uint32_t n) {
    uint32_t sum = 1;
    for (uint32_t i = 0; i < n; i++)
        sum = sum * 31 + i;
    return sum;
}
int main(int count, char **words) { return count > 1 && work((uint32_t)atoi(words[1])) == 7; }
"""


def run(*command: str, code: int = 0) -> str:
    done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, timeout=120)
    told = done.stdout + done.stderr
    assert done.returncode == code, f"{' '.join(command)} ended with {done.returncode}:\n{told}"
    return told


def lay(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = WORK / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def package() -> None:
    """Build and install a library with Ninja, then find and use it in another project with Make."""
    run("cmake", "-G", "Ninja", "-S", "lib", "-B", "lib-build", "-DCMAKE_INSTALL_PREFIX=/workspace/prefix")
    run("cmake", "--build", "lib-build")
    run("cmake", "--install", "lib-build")
    run("cmake", "-G", "Unix Makefiles", "-S", "app", "-B", "app-build", "-DCMAKE_PREFIX_PATH=/workspace/prefix")
    run("cmake", "--build", "app-build")
    assert run("app-build/app") == "42\n", "the installed library adds wrongly"


def faults() -> None:
    """One read past the end and one leak, seen by three tools."""
    run("gcc", "-g", "-O0", "-o", "faulty", "faulty.c")
    told = run("valgrind", "--leak-check=full", "--error-exitcode=9", "./faulty", code=9)
    assert "Invalid read of size 4" in told and "definitely lost: 16 bytes" in told and "faulty.c:3" in told, told
    run("gcc", "-g", "-no-pie", "-fsanitize=address,undefined", "-o", "checked", "faulty.c")
    assert "heap-buffer-overflow" in run("./checked", code=1), "the sanitizer saw nothing"
    assert "Line 3" in run("gdb", "-batch", "-ex", "info line last", "./faulty"), "GDB knows no lines"


def instructions(rounds: int) -> int:
    told = run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "./counted", str(rounds))
    found = re.search(r"Collected : (\d+)", told)
    assert found, told
    return int(found[1])


def counts() -> None:
    """A loop's count grows with its rounds, and by a whole number of instructions a round."""
    run("gcc", "-O1", "-o", "counted", "counted.c")
    short, long, longer = (instructions(rounds) for rounds in (10_000, 20_000, 30_000))
    assert longer - long == long - short and (long - short) % 10_000 == 0, f"{short}, {long}, {longer}"


lay({**LIBRARY, "faulty.c": FAULTY, "counted.c": COUNTED})
package()
faults()
counts()
run("make", "--version")
print("built, installed, found, checked and counted")
