"use strict";
// Sorting, filter, copying and live updates of pages that are complete without this script.
(function () {
  var PAGE = 100, EVERY = 10000;
  var states = {};

  function make(name, text, parent) {
    var e = document.createElement(name);
    if (text) e.textContent = text;
    if (parent) parent.appendChild(e);
    return e;
  }

  // A cell as something that < compares: a number, or a text with its numbers in equal width.
  function key(cell) {
    var text = cell.dataset.v || cell.textContent;
    var n = parseFloat(text);
    if (cell.classList.contains("t") || cell.tagName === "TH")
      return text.toLowerCase().replace(/\d+/g, function (d) { return d.padStart(12, "0"); });
    return isNaN(n) ? -Infinity : n;
  }

  function table(t) {
    var body = t.tBodies[0], rows = Array.from(body.rows), heads = Array.from(t.tHead.rows[0].cells);
    var state = states[t.id] || (states[t.id] = { column: -1, down: false, filter: "", page: 0 });
    var keys = [], texts = null, shown = rows, input, status, before, after;

    function show(all) {
      var pages = Math.max(1, Math.ceil(shown.length / PAGE));
      state.page = Math.min(state.page, pages - 1);
      var from = state.page * PAGE, to = Math.min(from + PAGE, shown.length);
      body.replaceChildren.apply(body, all === true ? shown : shown.slice(from, to));
      heads.forEach(function (h, i) {
        if (i === state.column) h.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else h.removeAttribute("aria-sort");
      });
      if (status) {
        status.textContent = shown.length === 0 ? "no row matches"
          : (from + 1) + " to " + to + " of " + shown.length;
        before.disabled = state.page === 0;
        after.disabled = state.page === pages - 1;
      }
    }

    function apply() {
      var c = state.column, filter = state.filter.toLowerCase();
      shown = rows;
      if (filter) {
        texts = texts || rows.map(function (r) { return r.textContent.toLowerCase(); });
        shown = rows.filter(function (r, i) { return texts[i].includes(filter); });
      }
      if (c >= 0) {
        var k = keys[c] || (keys[c] = new Map(rows.map(function (r) { return [r, key(r.cells[c])]; })));
        var sign = state.down ? -1 : 1;
        shown = shown.slice().sort(function (a, b) {
          var x = k.get(a), y = k.get(b);
          return x < y ? -sign : x > y ? sign : 0;
        });
      }
      show();
    }

    heads.forEach(function (h, i) {
      var b = make("button", h.textContent);
      b.type = "button";
      b.id = t.id + "-sort" + i;
      h.replaceChildren(b);
      b.addEventListener("click", function () {
        // Numbers begin with the largest, texts with the first.
        var text = rows.length > 0 && (i === 0 || rows[0].cells[i].classList.contains("t"));
        state.down = state.column === i ? !state.down : !text;
        state.column = i;
        state.page = 0;
        apply();
      });
    });
    if (rows.length > 10) {
      var tools = document.createElement("div");
      tools.className = "tools";
      var label = make("label", "Filter ", tools);
      input = make("input", "", label);
      input.type = "search";
      input.id = t.id + "-filter";
      input.value = state.filter;
      input.addEventListener("input", function () { state.filter = input.value; state.page = 0; apply(); });
      before = make("button", "Previous", tools);
      after = make("button", "Next", tools);
      status = make("span", "", tools);
      status.setAttribute("role", "status");
      [before, after].forEach(function (b, i) {
        b.type = "button";
        b.id = t.id + (i ? "-next" : "-previous");
        b.hidden = rows.length <= PAGE;
        b.addEventListener("click", function () { state.page += i ? 1 : -1; show(); });
      });
      t.parentElement.before(tools);
    }
    addEventListener("beforeprint", function () { if (t.isConnected) show(true); });
    addEventListener("afterprint", function () { if (t.isConnected) show(); });
    if (rows.length > PAGE || state.column >= 0 || state.filter) apply();
    else show();
  }

  function command(item) {
    var code = item.querySelector("code"), b = make("button", "Copy", item);
    b.type = "button";
    b.setAttribute("aria-label", "Copy " + code.textContent);
    b.addEventListener("click", function () {
      navigator.clipboard.writeText(code.textContent).then(function () {
        b.textContent = "Copied";
        setTimeout(function () { b.textContent = "Copy"; }, 2000);
      }, function () { getSelection().selectAllChildren(code); });
    });
  }

  // Another order, page or filter of the list of clients; without this they load the page.
  function go(url, push) {
    fetch(url, { cache: "no-store" }).then(function (r) {
      if (!r.ok) throw new Error(r.status);
      return r.text();
    }).then(function (text) {
      if (push) history.pushState(null, "", url);
      replace(text, true);
    }).catch(function () { location.assign(url); });
  }

  function list(root) {
    root.querySelectorAll('th a[id^="sort-"], nav.tools a').forEach(function (a) {
      a.addEventListener("click", function (event) {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        go(a.href, true);
      });
    });
    root.querySelectorAll("form.tools").forEach(function (form) {
      form.addEventListener("submit", function (event) {
        event.preventDefault();
        go(form.action + "?" + new URLSearchParams(new FormData(form)), true);
      });
    });
  }

  function enhance(root) {
    root.querySelectorAll("table[data-sort]").forEach(table);
    list(root);
    if (navigator.clipboard) root.querySelectorAll(".commands li").forEach(command);
  }

  // The page as the server has it now, in place of the old one; open tables, focus and positions stay.
  function replace(text, asked) {
    var fresh = new DOMParser().parseFromString(text, "text/html");
    var main = document.getElementById("main"), next = fresh.getElementById("main");
    var why = document.getElementById("why"), news = fresh.getElementById("why");
    if (!next) return;
    var active = document.activeElement, inside = active && main.contains(active);
    var name = !inside ? "" : active.id ? "#" + CSS.escape(active.id)
      : active.tagName === "A" ? 'a[href="' + CSS.escape(active.getAttribute("href")) + '"]'
      : active.tagName === "SUMMARY" && active.parentElement.id ? "#" + CSS.escape(active.parentElement.id) + ">summary" : "";
    var open = Array.from(main.querySelectorAll("details[open][id]"), function (d) { return d.id; });
    var places = Array.from(main.querySelectorAll(".scroll"), function (s) { return [s.scrollLeft, s.scrollTop]; });
    // While something is typed, or what has the focus could not be found again: the next time.
    if (!asked && inside && (name === "" || active.type === "search")) return;
    if (why && news) {
      if (why.textContent !== news.textContent) why.textContent = news.textContent;
      news.replaceWith(why); // The same element, so that it is announced only when it changes.
    }
    main.replaceChildren.apply(main, Array.from(next.childNodes));
    document.title = fresh.title;
    enhance(main);
    open.forEach(function (d) { d = document.getElementById(d); if (d) d.open = true; });
    main.querySelectorAll(".scroll").forEach(function (s, i) {
      if (places[i]) { s.scrollLeft = places[i][0]; s.scrollTop = places[i][1]; }
    });
    var again = name && main.querySelector(name);
    if (again) again.focus({ preventScroll: true });
  }

  function live() {
    setTimeout(live, EVERY);
    if (document.hidden || !getSelection().isCollapsed) return;
    fetch(location.href, { cache: "no-store" }).then(function (r) {
      if (!r.ok) throw new Error(r.status);
      return r.text();
    }).then(function (text) {
      document.body.classList.remove("stale");
      replace(text);
    }).catch(function () {
      document.body.classList.add("stale"); // The style sheet says so.
    });
  }

  enhance(document);
  if ("live" in document.body.dataset) {
    setTimeout(live, EVERY);
    addEventListener("popstate", function () { go(location.href, false); });
  }
})();
