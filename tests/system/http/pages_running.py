"""What a browser makes of the pages of a running federation of 10 000 clients: pages_running.py ROOT AXE (may be empty).

Prints a line for each rule, "ok" or "FAILED"; times are printed only.
"""
import sys
import time

import browser as chromium
from page_browser import accessible, enter, rule, tab_to, type_text, until

ROOT = sys.argv[1]
LOADED = "document.readyState === 'complete'"


def looks(b):
    for path in ("/", "/clients", "/clients/c0", "/rounds/2"):
        b.console.clear()
        for width in (1280, 320):
            b.size(width)
            b.open(ROOT + path)
            b.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            accessible(b, "%s, %d pixels" % (path, width))
            rule("%s, %d pixels: nothing is wider than the window" % (path, width),
                 b.run("document.documentElement.scrollWidth <= innerWidth"))
        rule(path + ": the console is empty", b.console == [], b.console)
        levels = b.run("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])")
        rule(path + ": one first heading, and no level is left out",
             levels[:1] == [1] and levels.count(1) == 1 and all(y <= x + 1 for x, y in zip(levels, levels[1:])), levels)
        rule(path + ": only the script of the page", b.run("document.scripts.length") == 1)
    b.size(1280)


def charts(b):
    b.open(ROOT + "/")
    for name, title in (("c-time", "Round time by phase"), ("c-grid", "Who sent which layer"),
                        ("c-participants", "Clients in a round")):
        rule("the overview has the chart '%s', its picture, caption and table" % title,
             b.run("(e => !!e && e.querySelector('h3').textContent === '%s' && !!e.querySelector('svg') && "
                   "!!e.querySelector('figcaption') && !!e.querySelector('details table tbody tr'))"
                   "(document.getElementById('%s'))" % (title, name)))
    rule("and none that the algorithm has no data for", b.run("document.getElementById('c-mixing')") is None)
    b.open(ROOT + "/clients/c0")
    rule("a client has its participations", b.run("document.querySelectorAll('#parts tbody tr').length") == 3)
    b.open(ROOT + "/rounds/2")
    rule("a round has its participants", b.run("document.querySelectorAll('#parts tbody tr').length") == 3)
    rule("and the time of its phases", b.run("!!document.querySelector('#time table')"))


def keyboard(b):
    b.open(ROOT + "/")
    rule("a client is reached from the overview by Tab", tab_to(b, "e.tagName === 'A' && e.pathname.startsWith('/clients/')", 200))
    b.open(ROOT + "/clients")
    rule("the filter is reached by Tab", tab_to(b, "e.id === 'filter'", 50))
    type_text(b, "x07777")
    start = time.monotonic()
    enter(b)
    rule("the filter finds any of 10 000 clients", until(b, LOADED + " && location.search.includes('x07777')") and
         b.run("document.querySelectorAll('#clients tbody tr').length") == 1)
    print("filtering 10 000 clients takes %.0f ms, the page included" % ((time.monotonic() - start) * 1000))
    rule("its link is reached by Tab", tab_to(b, "e.tagName === 'A' && e.pathname === '/clients/x07777'", 50))
    enter(b)
    rule("and leads to its page", until(b, LOADED + " && location.pathname === '/clients/x07777'") and
         b.run("document.querySelector('h1').textContent") == "x07777")
    b.open(ROOT + "/clients")
    rule("a column is reached by Tab", tab_to(b, "e.id === 'sort-samples'", 50))
    start = time.monotonic()
    enter(b)
    rule("and sorts all of them", until(b, LOADED + " && location.search.includes('sort=samples')") and
         b.run("document.querySelector('#clients tbody th').textContent") == "x09999")
    print("sorting 10 000 clients takes %.0f ms, the page included" % ((time.monotonic() - start) * 1000))
    rule("the column keeps the focus", b.run("document.activeElement.id") == "sort-samples")
    b.run("history.back()")
    rule("the way back leads to the order of before", until(b, "document.querySelector('#clients tbody th').textContent !== 'x09999'") and
         b.run("!location.search.includes('sort=samples')"))
    start = time.monotonic()
    b.open(ROOT + "/")
    until(b, "performance.getEntriesByName('first-paint').length > 0")
    print("the overview is loaded in %.0f ms, first paint after %.0f ms" % (
        (time.monotonic() - start) * 1000, b.run("performance.getEntriesByName('first-paint')[0]?.startTime ?? -1")))


def main():
    b = chromium.Browser()
    try:
        looks(b)
        charts(b)
        keyboard(b)
    finally:
        b.close()


main()
