# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A headless Chromium, driven over DevTools' protocol through two pipes; needs no other package."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


def program():
    """Chromium's path; None where it is not installed."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A page of 1000 by 800 pixels. What its console says of errors is in `complaints`."""

    def __init__(self, longest=120):
        self.deadline = time.monotonic() + longest
        self.complaints, self.number, self.events = [], 0, []
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        their_in, self.to = os.pipe()
        self.out, their_out = os.pipe()

        def as_3_and_4():
            a, b = os.dup(their_in), os.dup(their_out)
            os.dup2(a, 3)
            os.dup2(b, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=as_3_and_4, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(their_in)
        os.close(their_out)
        self.rest, self.session = b"", None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.show(1000, 800)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.out)
        self.profile.cleanup()

    def read(self):
        os.set_blocking(self.out, False)
        while b"\0" not in self.rest:
            if time.monotonic() > self.deadline:
                raise TimeoutError("Chromium does not answer")
            try:
                part = os.read(self.out, 1 << 20)
                if not part:
                    raise RuntimeError("Chromium has ended")
                self.rest += part
            except BlockingIOError:
                time.sleep(0.005)
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            got = self.read()
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']['message']}")
                return got["result"]
            if got.get("method") == "Log.entryAdded" and got["params"]["entry"]["level"] == "error":
                self.complaints.append(got["params"]["entry"]["text"])
            if got.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(got["params"]["exceptionDetails"]))

    def run(self, expression):
        """The value of an expression, also of a promise."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(json.dumps(got["exceptionDetails"]))
        return got["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)

    def wait_for(self, expression):
        """Until it is true; its value."""
        while True:
            try:
                value = self.run(expression)
            except RuntimeError as e:  # the page before has gone, or an element is not there yet
                value, self.why = None, e
            if value:
                return value
            if time.monotonic() > self.deadline:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.05)

    def show(self, width, height, scheme="light", scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def press(self, key, **more):
        code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "End": 35, " ": 32}[key]
        text = {"Enter": "\r", " ": " "}.get(key)
        keys = {"key": key, "code": key, "windowsVirtualKeyCode": code, **more}
        self.call("Input.dispatchKeyEvent", type="keyDown", **keys, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **keys)

    def picture(self, path, whole=True):
        got = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(got["data"]))
