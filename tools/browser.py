#!/usr/bin/env python3
"""Headless Chromium over its debugging pipe, without further packages: pictures of a page, and tests of it.

    tools/browser.py PAGE DIR                 # light.png, dark.png, narrow.png (320 pixels), forced.png, print.png in DIR
    tools/browser.py PAGE FILE.png [WIDTH [HEIGHT]]    # one light picture, at most that high (1100, 6000 pixels)

PAGE is a file, or an address that begins with http:// or https://. Exit code 1: the page did not load.
As a module: Browser().open(url), .run(javascript), .picture(path). Debian: apt-get install chromium.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time


class Failure(Exception):
    pass


def program():
    """The path of Chromium, or None."""
    for name in (os.environ.get("FL_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One page of one browser. Messages of its console and of errors are in .console."""

    LIMIT = 600  # seconds, which only a hang reaches

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def three_and_four():
            # Both are first moved out of the way of the other.
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--user-data-dir=" + self.folder,
             "about:blank"],
            close_fds=False, preexec_fn=three_and_four, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.rest, self.console, self.events = 0, b"", [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    session = None

    def read(self):
        """The next message."""
        until = time.monotonic() + self.LIMIT
        while b"\0" not in self.rest:
            if not select.select([self.reader], [], [], max(0, until - time.monotonic()))[0]:
                raise Failure("chromium did not answer")
            more = os.read(self.reader, 1 << 20)
            if not more:
                raise Failure("chromium has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        method, of = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(of["type"] + ": " + " ".join(str(a.get("value")) for a in of["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append("exception: " + json.dumps(of["exceptionDetails"])[:500])
        elif method == "Log.entryAdded":
            self.console.append(of["entry"]["level"] + ": " + of["entry"]["text"])
        if method:
            self.events.append(method)
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(method + ": " + answer["error"]["message"])
                return answer["result"]

    def open(self, url):
        self.events.clear()
        error = self.call("Page.navigate", url=url).get("errorText")
        if error:
            raise Failure(url + ": " + error)
        while "Page.loadEventFired" not in self.events:
            self.read()

    def run(self, script):
        """The value of a JavaScript expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise Failure("script: " + json.dumps(result["exceptionDetails"])[:1000])
        return result["result"].get("value")

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, media="", **features):
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": n.replace("_", "-"), "value": v} for n, v in features.items()])

    def key(self, name, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def picture(self, path, longest=6000):
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("document.documentElement.clientWidth")
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": min(height, longest), "scale": 1})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (Failure, OSError):
            pass
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)
        shutil.rmtree(self.folder, ignore_errors=True)


def address_of(page):
    """The URL of an argument: an address as it is, or a file."""
    if page.startswith(("http://", "https://")):
        return page
    if not pathlib.Path(page).is_file():
        raise Failure(page + ": expected a file, or an address that begins with http:// or https://")
    return pathlib.Path(page).resolve().as_uri()


def one_picture(browser, url, path, width=1100, height=6000):
    # A low window: a page is as high as its text, or as the window.
    browser.size(int(width), 100)
    browser.media(prefers_color_scheme="light")
    browser.open(url)
    browser.picture(path, int(height))


def all_pictures(browser, url, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, width, media, features in (("light", 1280, "", {"prefers_color_scheme": "light"}),
                                         ("dark", 1280, "", {"prefers_color_scheme": "dark"}),
                                         ("narrow", 320, "", {"prefers_color_scheme": "light"}),
                                         ("forced", 1280, "", {"forced_colors": "active"}),
                                         ("print", 800, "print", {})):
        browser.size(width)
        browser.media(media, **features)
        browser.open(url)
        browser.picture(folder / (name + ".png"))


def main(args):
    one = len(args) > 1 and args[1].endswith(".png")
    if not 2 <= len(args) <= (4 if one else 2) or not all(a.isdigit() for a in args[2:]):
        sys.exit(__doc__)
    if program() is None:
        sys.exit("browser.py: chromium is not installed (Debian: apt-get install chromium)")
    browser = None
    try:
        url = address_of(args[0])
        browser = Browser()
        if one:
            one_picture(browser, url, *args[1:])
        else:
            all_pictures(browser, url, pathlib.Path(args[1]))
    except Failure as e:
        sys.exit("browser.py: %s" % e)
    finally:
        if browser is not None:
            browser.close()
    for line in browser.console:
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
