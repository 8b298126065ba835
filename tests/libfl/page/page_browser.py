"""What a browser makes of the pages: page_browser.py SAMPLE AXE (may be empty). Prints a line for each rule, "ok" or "FAILED"."""
import http.server
import pathlib
import subprocess
import sys
import threading
import time
import urllib.parse

import browser as chromium

SAMPLE, AXE = sys.argv[1], sys.argv[2]
TICKS = "const real = setTimeout; window.setTimeout = (f, ms) => real(f, Math.min(ms, 50));"


def page(kind, query=""):
    return subprocess.run([SAMPLE, kind, query], stdout=subprocess.PIPE, check=True).stdout


class Pages(http.server.BaseHTTPRequestHandler):
    """The pages of a server, each made when it is asked for. `said` replaces the sentence at the top."""

    said = b""
    alive = True
    report = b""

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if not Pages.alive:
            self.send_error(503)
            return
        kind = {"/": "overview", "/clients": "clients", "/report": "report"}.get(
            url.path, "client" if url.path.startswith("/clients/") else "round" if url.path.startswith("/rounds/") else "")
        if kind == "":
            self.send_response(204)  # The icon that browsers ask for.
            self.end_headers()
            return
        text = page(kind, url.query)
        if Pages.said:
            head, mark, rest = text.partition(b'role="status">')
            text = head + mark + Pages.said + rest[rest.index(b"</p>"):] if mark else text
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        try:
            self.wfile.write(text)
        except OSError:
            pass  # The browser went to another page.

    def log_message(self, *args):
        pass


def rule(name, holds, why=""):
    print(("ok " if holds else "FAILED ") + name + ("" if holds or not why else ": " + str(why)[:1500]), flush=True)


def until(b, script):
    """Waits for a JavaScript expression; only a hang takes so long that it gives up."""
    end = time.monotonic() + b.LIMIT
    while not b.run(script):
        if time.monotonic() > end:
            raise chromium.Failure("waited in vain for " + script)
    return True


def tab_to(b, script, most):
    """Presses Tab until the expression holds of `e`, the element with the focus."""
    for _ in range(most):
        b.key("Tab", 9)
        if b.run("(e => !!e && (" + script + "))(document.activeElement)"):
            return True
    return False


def type_text(b, text):
    for c in text:
        b.key(c, ord(c.upper()), c)


def enter(b):
    b.key("Enter", 13, "\r")


def accessible(b, name):
    if not AXE:
        return
    b.run(pathlib.Path(AXE).read_text())
    found = b.run("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ' ' + "
                  "v.nodes.slice(0, 2).map(n => n.html.slice(0, 150) + ' ' + n.failureSummary).join(' | ')))")
    rule(name + ": axe finds no violation", found == [], found)


def looks(b, root):
    for kind, path in (("overview", "/"), ("clients", "/clients"), ("client", "/clients/a"), ("round", "/rounds/2"),
                       ("report", "/report")):
        b.console.clear()
        for width, scheme in ((1280, "light"), (1280, "dark"), (320, "light")):
            b.size(width)
            b.media("", prefers_color_scheme=scheme)
            b.open(root + path)
            b.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            if kind != "report" or scheme == "light":
                accessible(b, "%s, %d pixels, %s" % (kind, width, scheme))
            rule("%s, %d pixels, %s: nothing is wider than the window" % (kind, width, scheme),
                 b.run("document.documentElement.scrollWidth <= innerWidth"),
                 b.run("[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
                       " && !e.closest('.scroll,svg')).slice(0, 5).map(e => e.outerHTML.slice(0, 100))"))
        rule(kind + ": the console is empty", b.console == [], b.console)
        rule(kind + ": hostile texts are texts",
             b.run("document.scripts.length") == 1 and b.run("document.querySelectorAll('b[x]').length") == 0)
    b.size(1280)
    b.media("", prefers_color_scheme="light")


def keyboard(b, root):
    b.open(root + "/")
    b.key("Tab", 9)
    rule("the first Tab leads to the link that skips to the content", b.run("document.activeElement.className") == "skip")
    rule("a client is reached by Tab", tab_to(b, "e.tagName === 'A' && e.pathname.startsWith('/clients/')", 200))
    rule("the focus is visible", b.run("getComputedStyle(document.activeElement).outlineStyle") != "none")
    b.open(root + "/clients")
    rule("the filter is reached by Tab", tab_to(b, "e.id === 'filter'", 50))
    type_text(b, "client-09999")
    enter(b)
    rule("the filter finds any client",
         until(b, "document.readyState === 'complete' && location.search.includes('client-09999')") and
         b.run("document.querySelectorAll('#clients tbody tr').length") == 1)
    b.open(root + "/clients")
    rule("a column is reached by Tab", tab_to(b, "e.id === 'sort-samples'", 50))
    enter(b)
    rule("and sorts all pages", until(b, "document.readyState === 'complete' && location.search.includes('sort=samples')") and
         b.run("document.querySelector('#clients tbody th').textContent") == "client-09999")


def tables(b, root):
    start = time.monotonic()
    b.open(root + "/report")
    print("a report of 10 000 clients is loaded in %.0f ms, first paint after %.0f ms" % (
        (time.monotonic() - start) * 1000, b.run("performance.getEntriesByName('first-paint')[0]?.startTime ?? -1")))
    rule("a table of 10 000 rows shows 100", b.run("document.querySelectorAll('#p0-clients tbody tr').length") == 100)
    took = []
    for i in (3, 0, 9, 1):
        took.append(b.run("(() => { const t = performance.now(); document.getElementById('p0-clients-sort%d').click(); "
                          "document.body.offsetHeight; return performance.now() - t; })()" % i))
    print("sorting 10 000 clients by four columns takes %s ms" % ", ".join("%.0f" % t for t in took))
    rule("the column says so", b.run("document.querySelectorAll('#p0-clients th[aria-sort]').length") == 1)
    b.run("document.getElementById('p0-clients-sort3').click()")
    rule("the largest is first", b.run("document.querySelector('#p0-clients tbody th').textContent") == "client-09999")
    b.run("document.getElementById('p0-clients-sort3').click()")
    rule("and the second time last", b.run("document.querySelector('#p0-clients tbody td:nth-child(4)').textContent") == "600")
    took = b.run("(() => { const i = document.getElementById('p0-clients-filter'), t = performance.now(); i.value = 'CLIENT-0777'; "
                 "i.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - t; })()")
    print("filtering 10 000 clients takes %.0f ms" % took)
    rule("the filter leaves ten", b.run("document.querySelectorAll('#p0-clients tbody tr').length") == 10)
    b.run("(i => { i.value = ''; i.dispatchEvent(new Event('input')); })(document.getElementById('p0-clients-filter'))")
    b.run("document.getElementById('p0-clients-next').click()")
    rule("the next page follows", b.run("document.querySelector('#p0-clients-next').parentElement.textContent").find(
        "101 to 200 of 10000") >= 0)
    b.run("dispatchEvent(new Event('beforeprint'))")
    rule("all rows are printed", b.run("document.querySelectorAll('#p0-clients tbody tr').length") == 10000)


def updates(b, root):
    script = b.call("Page.addScriptToEvaluateOnNewDocument", source=TICKS)["identifier"]
    b.open(root + "/")
    b.run("window.same = document.getElementById('why'); document.getElementById('c-loss-d').open = true;"
          "document.querySelector('#clients a').focus(); document.getElementById('clients-sort5').click(); "
          "document.querySelector('#clients a').focus(); window.link = document.activeElement.href")
    Pages.said = b"round 13 &lt;b&gt; is TRAINING"
    rule("a page follows the server", until(b, "document.getElementById('why').textContent === 'round 13 <b> is TRAINING'"))
    rule("the sentence stays the same element, so that changes of it are announced",
         b.run("same === document.getElementById('why')"))
    rule("an open table stays open", b.run("document.getElementById('c-loss-d').open"))
    rule("the focus stays", b.run("document.activeElement.href === link"))
    rule("the order stays", b.run("document.querySelectorAll('#clients th')[5].getAttribute('aria-sort')") == "descending")
    Pages.alive = False
    rule("a server that does not answer is named", until(b, "document.body.classList.contains('stale')"))
    Pages.alive, Pages.said = True, b""
    rule("and is found again", until(b, "!document.body.classList.contains('stale')"))
    b.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def main():
    page("overview")  # Ends the test when it cannot be made.
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = "http://127.0.0.1:%d" % server.server_port
    b = chromium.Browser()
    try:
        looks(b, root)
        keyboard(b, root)
        tables(b, root)
        updates(b, root)
    finally:
        b.close()


if __name__ == "__main__":
    main()
