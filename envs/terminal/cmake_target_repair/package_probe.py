# pyright: basic, reportUndefinedVariable=false
"""Runs inside a verifier sandbox as root, never imported here: builds, installs, moves and uses a CMake project.

`measuring.py` sends this text as a probe. All files come with the payload and are root's; cmake, ninja and the built
programs run as uid 1000, and what one step leaves running is ended before the next. The answer is what was seen.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile

AGENT = 1000
PREFIX = "course-"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": "/tmp", "CMAKE_BUILD_PARALLEL_LEVEL": "2"}


def end_agents():
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == AGENT:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue  # gone by itself


def clear():
    """What a probe that was ended left behind takes no room from this one."""
    for name in os.listdir("/tmp"):
        if name.startswith(PREFIX):
            shutil.rmtree(os.path.join("/tmp", name), ignore_errors=True)


def limits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(argv, cwd, seconds, home):
    """(exit code or None, its output), as the agent."""
    with tempfile.TemporaryFile() as told:
        try:
            process = subprocess.Popen(
                argv, cwd=cwd, env={**ENVIRONMENT, "HOME": home}, stdin=subprocess.DEVNULL, stdout=told,
                stderr=subprocess.STDOUT, start_new_session=True, user=AGENT, group=AGENT, extra_groups=[],
                preexec_fn=limits,
            )  # fmt: skip
        except OSError as error:
            return 127, str(error)
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass  # nothing of it is left
        process.wait()
        told.seek(0)
        return code, told.read(400_000).decode("utf-8", "replace")


def lay(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def facts_of(text, prefix, facts):
    for line in text.splitlines()[:400]:
        name, _, value = line.partition(" ")
        if re.fullmatch(r"[\w-]{1,60}", name) and len(value) < 60:
            facts.setdefault(f"{prefix}:{name}", value)


def read_facts(folder, prefix, facts):
    if not os.path.isdir(folder) or os.path.islink(folder):
        return
    for name in sorted(os.listdir(folder))[:60]:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                text = file.read(4000).decode("utf-8", "replace")
            facts_of(text.replace("found TRUE", "found 1").replace("found FALSE", "found 0"), f"{prefix}:{name}", facts)


class Course:
    """One variant, step by step; `problems` are what stopped it, `late` is whether anything ran out of time."""

    def __init__(self, base, seconds):
        self.base, self.seconds, self.facts, self.problems = base, seconds, {}, []
        self.home, self.late = os.path.join(base, "home"), False

    def ran(self, argv, cwd, seconds):
        code, told = run(argv, cwd, seconds, self.home)
        end_agents()
        self.late = self.late or code is None
        return code, told

    def step(self, what, argv, cwd="/tmp", needed=True):
        code, told = self.ran(argv, cwd, self.seconds)
        if code == 0:
            return True
        lines = [line.strip() for line in told.splitlines() if line.strip()]
        first = next(
            (at for at, line in enumerate(lines) if "rror" in line or "FAILED" in line), max(0, len(lines) - 4)
        )
        how = "did not end in time" if code is None else f"ended with {code}"
        self.problems.append(f"{what} {how}: {' | '.join(lines[first : first + 5])[:500]}")
        return not needed

    def program(self, path, arguments, prefix):
        if os.path.isfile(path) and not os.path.islink(path):
            code, told = self.ran([path, *arguments], "/tmp", 10)
            if code == 0:
                facts_of(told, prefix, self.facts)


def configure(generator, source, build, *definitions):
    return ["cmake", "-G", generator, "-S", source, "-B", build, *definitions]


def built(build, generator, configuration):
    return ["cmake", "--build", build, *(["--config", configuration] if "Multi" in generator else []), "--", "-k", "0"]


def in_folder(build, folder, generator, configuration):
    return os.path.join(build, folder, configuration) if "Multi" in generator else os.path.join(build, folder)


def installed(prefix, name, job, facts):
    """Which promised files are there; nothing is opened."""
    for label, path in job["looked_for"].items():
        if label.startswith(f"{name}/"):
            facts[label] = str(int(any(os.path.exists(os.path.join(prefix, one)) for one in path)))


def package(course, variant, job):
    base, generator, name = course.base, job["generator"], variant["name"]
    project, build, stage = (os.path.join(base, part) for part in ("project", "work/build", "work/stage"))
    lay(project, job["project"])
    options = [f"-DBUILD_SHARED_LIBS={'ON' if variant['shared'] else 'OFF'}", f"-DCMAKE_INSTALL_PREFIX={stage}"]
    if "Multi" not in generator:
        options.append("-DCMAKE_BUILD_TYPE=Release")
    try:
        if not course.step("configuring", configure(generator, project, build, *options)):
            return
        for configuration in job["configurations"]:
            if not course.step(f"building {configuration}", built(build, generator, configuration)):
                return
        demo = in_folder(build, "apps", generator, job["configurations"][0])
        course.program(os.path.join(demo, job["demo"]), job["inputs"][:1], f"{name}/{job['configurations'][0]}:demo")
        for configuration in job["configurations"]:
            if not course.step("installing", ["cmake", "--install", build, "--config", configuration]):
                return
    finally:
        shutil.rmtree(project)
        course.step("clearing", ["rm", "-rf", build], needed=False)
    prefix = os.path.join(base, "work", job["moved"])
    if course.step("moving", ["mv", stage, prefix]):
        installed(prefix, name, job, course.facts)
        consume(course, name, job, prefix)


def consume(course, name, job, prefix):
    source, build = os.path.join(course.base, "consumer"), os.path.join(course.base, "work/consumer")
    lay(source, job["consumer"])
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF"]
    generator = job["generator"]
    if "Multi" not in generator:
        options.append("-DCMAKE_BUILD_TYPE=Release")
    done = course.step("a consumer's configuring", configure(generator, source, build, *options))
    read_facts(os.path.join(build, "facts"), f"{name}/configure", course.facts)
    if done:
        for configuration in job["consumers"]:
            course.step(f"a consumer's {configuration} build", built(build, generator, configuration), needed=False)
            for one in job["libraries"]:
                where = in_folder(build, f"use_{one}", generator, configuration)
                prefixed = f"{name}/{configuration}:use_{one}"
                course.program(os.path.join(where, f"use_{one}"), job["inputs"], prefixed)
    shutil.rmtree(source)


def vendored(course, variant, job):
    source, build = os.path.join(course.base, "vendoring"), os.path.join(course.base, "work/build")
    lay(source, job["vendoring"])
    lay(os.path.join(source, "third_party/lib"), job["project"])
    done = course.step("configuring as a part", configure("Ninja", source, build, "-DCMAKE_BUILD_TYPE=Release"))
    read_facts(os.path.join(build, "facts"), "vendored/Release", course.facts)
    if done:
        course.step("building as a part", built(build, "Ninja", "Release"), needed=False)
        for one in job["libraries"]:
            course.program(os.path.join(build, f"use_{one}"), job["inputs"], f"vendored/Release:use_{one}")
    shutil.rmtree(source)


def measured(variant, job):
    base = tempfile.mkdtemp(prefix=PREFIX, dir="/tmp")
    os.chmod(base, 0o755)
    for name in ("work", "home"):
        os.mkdir(os.path.join(base, name))
        os.chmod(os.path.join(base, name), 0o777)
    course = Course(base, job["step_s"])
    (vendored if variant["vendored"] else package)(course, variant, job)
    course.step("clearing", ["sh", "-c", "chmod -R u+rwX work; rm -rf work/* home/*"], cwd=base, needed=False)
    return {"facts": course.facts, "problems": course.problems, "late": course.late}


end_agents()
clear()
_answer({variant["name"]: measured(variant, payload) for variant in payload["variants"]})  # noqa: F821
