"""Prints docker-compose.yml as podman would be called: a line for each service in the order of `depends_on`, its words separated by tabs.

The first word is the service's name, the second `step` for one that must end with 0 before the next, else `stays`; the rest are the
arguments of `podman run`. Called with a file of variables (.env.sandbox) and the profiles to use.
"""

import json
import re
import sys

import yaml

variables = dict(
    line.rstrip("\n").split("=", 1) for line in open(sys.argv[1]) if "=" in line and not line.startswith("#")
)
profiles = set(sys.argv[2:])


def interpolated(value):
    """`${NAME:-default}` and `${NAME:?error}`, as compose reads them."""

    def of(match):
        name, kind, rest = match.groups()
        found = variables.get(name)
        if not found and kind == ":?":
            raise SystemExit(f"{name}: {rest}")
        return found or (rest if kind == ":-" else "")

    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}", of, value).replace("$$", "$")
    if isinstance(value, list):
        return [interpolated(item) for item in value]
    if isinstance(value, dict):
        return {key: interpolated(item) for key, item in value.items()}
    return value


services = interpolated(yaml.safe_load(open("docker-compose.yml")))["services"]
chosen = {name: of for name, of in services.items() if not of.get("profiles") or profiles & set(of["profiles"])}
steps = {
    needed
    for service in chosen.values()
    for needed, how in service.get("depends_on", {}).items()
    if how["condition"] == "service_completed_successfully"
}
known = set(
    "profiles build image user restart healthcheck network_mode networks volumes entrypoint command environment env_file "
    "depends_on read_only cap_drop security_opt ulimits mem_limit pids_limit stop_grace_period shm_size tmpfs ports".split()
)


def arguments(name, service):
    unknown = service.keys() - known
    if unknown:
        raise SystemExit(f"{name}: this script does not know {sorted(unknown)}")
    yield from ("--name", name)
    if service.get("user"):
        yield from ("--user", service["user"])
    if service.get("read_only"):
        yield "--read-only"
    for capability in service.get("cap_drop", []):
        yield from ("--cap-drop", capability)
    for option in service.get("security_opt", []):
        yield from ("--security-opt", option.replace(":true", ""))
    for limit, value in service.get("ulimits", {}).items():
        yield from ("--ulimit", f"{limit}={value}:{value}")
    for key, option in (("mem_limit", "--memory"), ("pids_limit", "--pids-limit"), ("shm_size", "--shm-size")):
        if key in service:
            yield from (option, str(service[key]))
    for key, value in service.get("environment", {}).items():
        yield from ("--env", f"{key}={value}")
    for volume in service.get("volumes", []):
        yield from ("--volume", volume)
    for folder in service.get("tmpfs", []):
        yield from ("--tmpfs", folder)
    for port in service.get("ports", []):
        yield from ("--publish", port)
    networks = service.get("networks")
    yield from ("--network", service.get("network_mode") or ",".join(networks or ["default"]))
    check = service.get("healthcheck", {})
    if check.get("test"):
        # Podman's own timers need systemd; `podman healthcheck run` does not.
        yield from ("--health-cmd", json.dumps(check["test"][1:]), "--health-timeout", check["timeout"])
    entrypoint = service.get("entrypoint", [])
    if entrypoint:
        yield from ("--entrypoint", json.dumps(entrypoint))
    yield service["image"]
    yield from service.get("command", [])


def ordered():
    done = []
    while len(done) < len(chosen):
        ready = [
            name
            for name, service in chosen.items()
            if name not in done and all(needed in done for needed in service.get("depends_on", {}) if needed in chosen)
        ]
        if not ready:
            raise SystemExit("depends_on has a circle")
        done += ready
    return done


for name in ordered():
    words = [name, "step" if name in steps else "stays", *arguments(name, chosen[name])]
    # Words may have line breaks, as the script of `password` has.
    sys.stdout.write("\t".join(word.replace("\t", " ") for word in words) + "\0")
