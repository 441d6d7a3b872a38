# SPDX-License-Identifier: GPL-2.0
"""The report: lines on the terminal and in a text file, and all data as JSON."""

import datetime
import json
import pathlib

from . import disk


class Report:
    """Results of the tests, written after each of them."""

    def __init__(self, prefix, description):
        now = datetime.datetime.now(datetime.timezone.utc)
        self._prefix = prefix
        self._lines = []
        self._data = {"format": 1, "time": now.isoformat(timespec="seconds"),
                      "machine": description, "disk": None, "tests": []}
        try:
            self._write()
        except OSError as error:
            raise disk.RefusedError(f"cannot write the report: {error}") from error

    def _say(self, line):
        print(line, flush=True)
        self._lines.append(line)

    def show_machine(self):
        """Show the description of the machine."""
        described = self._data["machine"]
        kernel = described["kernel"]
        self._say(f"kernel {kernel['release']} {kernel['machine']}, {kernel['distribution']}, "
                  f"{kernel['cpus']} CPUs")
        for name, module in described["modules"].items():
            self._say(f"module {name}: {module['file'] or 'built in'}")
        for device in described["devices"]:
            for port in device["ports"]:
                firmware = device.get("fw_ver") or "unknown"
                self._say(f"device {device['name']} port {port['number']}: "
                          f"{device['driver'] or 'software'}, firmware {firmware}, "
                          f"{port.get('link_layer')}, {port.get('rate')}, {port.get('state')}")
        if not described["devices"]:
            self._say("no RDMA device")
        for controller in described["controllers"]:
            self._say(f"controller {controller['name']}: {controller.get('address')}, "
                      f"{controller.get('state')}")

    def add_disk(self, description):
        """Add and show the disk."""
        self._data["disk"] = description
        self._say(f"disk {description['name']}: {description['bytes'] >> 20} MiB, controllers "
                  f"{' '.join(description['controllers'])}, identity {description['identity']}")

    def add(self, name, result, detail="", **values):
        """Add and show a test: `result` is ok, FAILED or skipped."""
        self._data["tests"].append({"name": name, "result": result, "detail": detail, **values})
        self._say(f"{result:7} {name}{': ' if detail else ''}{detail}")
        self._data.pop("running", None)
        self._write()

    def begin(self, name):
        """Record a test that runs, in case that it never ends."""
        self._data["running"] = name
        self._write()

    def has_failures(self):
        """Return whether a test failed."""
        return any(test["result"] == "FAILED" for test in self._data["tests"])

    def _write(self):
        text, data = self._files()
        text.write_text("\n".join(self._lines) + "\n", encoding="utf-8")
        data.write_text(json.dumps(self._data, indent=1) + "\n", encoding="utf-8")

    def _files(self):
        return [pathlib.Path(f"{self._prefix}.{suffix}") for suffix in ("txt", "json")]

    def finish(self):
        """Show the sum, and return the exit status."""
        results = [test["result"] for test in self._data["tests"]]
        kinds = ("ok", "FAILED", "skipped")
        self._say(", ".join(f"{results.count(kind)} {kind}" for kind in kinds))
        self._write()
        print("report:", *self._files())
        return 1 if self.has_failures() else 0
