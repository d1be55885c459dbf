// Improves pages that work without it: times in the viewer's zone, live progress, panels that close.
"use strict";

(() => {
  const format = new Intl.DateTimeFormat("en-GB", {
    day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
  });

  function localTimes(root) {
    for (const element of root.querySelectorAll("time[datetime]:not([data-zone])")) {
      const at = new Date(element.dateTime);
      if (!Number.isNaN(at.getTime())) {
        const text = format.format(at);
        // The exact time stands behind an age.
        if (element.dataset.age === undefined) {
          element.title = element.textContent;
          element.textContent = text;
        } else {
          element.title = text;
        }
      }
    }
  }

  // Replaces every element with `data-live` by the one of the same id in the page as it is now, unless a person is using it.
  async function refresh() {
    const response = await fetch(location.href, { signal: AbortSignal.timeout(30000) });
    if (response.status === 429 || response.status >= 500) {
      throw new Error(`the page answers ${response.status}`);
    }
    if (!response.ok || response.redirected) {
      location.reload();
      return;
    }
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    localTimes(fresh);
    for (const element of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(element.id);
      const active = element.contains(document.activeElement) ? document.activeElement : null;
      const inUse = element.querySelector("details[open]") || active?.matches("input, select, textarea");
      if (next && !inUse) {
        const place = focusable(element).indexOf(active);
        element.replaceWith(next);
        const same = focusable(next)[place];
        if (same?.textContent === active?.textContent) {
          same?.focus();
        }
      }
    }
    markCut();
  }

  // A table that goes on to the right has a shadow there.
  function markCut() {
    for (const element of document.querySelectorAll(".scroll")) {
      element.classList.toggle("cut", element.scrollWidth - element.clientWidth - element.scrollLeft > 1);
    }
  }

  // Says that a live page is not live while its service does not answer.
  const notice = document.createElement("p");
  notice.className = "notice warn";
  notice.setAttribute("role", "status");
  notice.textContent = "The service does not answer. What is below may be out of date. This page goes on by itself when it answers.";

  function showAway() {
    if (!notice.isConnected) {
      document.getElementById("main").prepend(notice);
    }
  }

  function focusable(element) {
    return [...element.querySelectorAll("a, button, summary")];
  }

  // At most one refresh a second, and none while one runs.
  let updating = false, outdated = false;
  async function update() {
    outdated = true;
    if (updating) {
      return;
    }
    updating = true;
    while (outdated) {
      outdated = false;
      const begun = performance.now();
      try {
        await refresh();
      } catch {
        // The next event tries again.
      }
      const pause = Math.max(1000, 3 * (performance.now() - begun));
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    updating = false;
  }

  // Follows the events of the path in `data-events`.
  function follow(element) {
    const events = new EventSource(element.dataset.events);
    let silent = 0;
    events.addEventListener("error", async () => {
      // A stream also ends in good order, and then is there again at once.
      if (events.readyState !== EventSource.CLOSED) {
        silent ||= setTimeout(showAway, 4000);
        return;
      }
      // The answer was no stream, and does not say why. The page does: it is gone, it asks for the key, or it is there.
      clearTimeout(silent);
      try {
        await refresh();
        notice.remove();
      } catch {
        showAway();
      }
      setTimeout(() => follow(element), 5000);
    });
    events.addEventListener("open", () => {
      clearTimeout(silent);
      silent = 0;
      if (notice.isConnected) {
        notice.remove();
        update();
      }
    });
    events.addEventListener("item", update);
    events.addEventListener("reset", update);
    events.addEventListener("scan", (event) => {
      update();
      if (JSON.parse(event.data).finished_at) {
        events.close();
      }
    });
  }

  // "/" and Ctrl-K lead to the box in the head of the page, on Home to the box of questions.
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, select, textarea");
    const isSlash = event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
    const isCommand = event.key === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    const box = document.getElementById("find") ?? document.getElementById("ask");
    if (box && (isSlash || isCommand)) {
      event.preventDefault();
      box.select();
    }
  });
  // A panel closes with Escape and by a click outside.
  document.addEventListener("keydown", (event) => {
    const panel = event.key === "Escape" && document.querySelector("details.confirm[open]");
    if (panel) {
      panel.open = false;
      panel.querySelector("summary").focus();
    }
  });
  document.addEventListener("click", (event) => {
    for (const panel of document.querySelectorAll("details.confirm[open]")) {
      if (!panel.contains(event.target)) {
        panel.open = false;
      }
    }
  });
  // A panel near the end of the window is scrolled into it.
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("details.confirm[open]")) {
      event.target.querySelector(".panel").scrollIntoView({ block: "nearest" });
    }
  }, true);
  // Who types replaces what is suggested.
  for (const input of document.querySelectorAll("[data-select]")) {
    input.addEventListener("focus", () => input.select());
    if (document.activeElement === input) {
      input.select();
    }
  }
  for (const button of document.querySelectorAll("[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
  }
  // The same form is not sent twice.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (event.target.method === "post" && button) {
      setTimeout(() => { button.disabled = true; });
    }
  });
  window.addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("form button:disabled:not([data-off])")) {
      button.disabled = false;
    }
  });

  function choice(text, label, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "choice";
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    return button;
  }

  // Announces a value that the script has set, as typing does.
  function changed(input) {
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // Values with commas as chips; a chip removes its value.
  function chips(input) {
    const shown = document.createElement("div");
    shown.className = "choices";
    const values = () => input.value.split(",").map((value) => value.trim()).filter(Boolean);
    const render = () => {
      const all = values();
      shown.replaceChildren(...(all.length < 2 ? [] : all).map((value, place) =>
        choice(`${value} ×`, `Remove ${value}`, () => {
          input.value = all.filter((_, other) => other !== place).join(", ");
          changed(input);
          input.focus();
        })));
    };
    input.addEventListener("input", render);
    input.after(shown);
    render();
  }

  // A range of dates: its end is not before its beginning, with lengths to choose and the number of days.
  function range(from) {
    const to = document.getElementById(from.dataset.range);
    const shown = document.createElement("div");
    shown.className = "choices";
    const count = document.createElement("span");
    count.className = "hint";
    count.setAttribute("aria-live", "polite");
    const day = 86400000;
    const update = () => {
      // To set it again would empty a date that is being typed.
      if (to.min !== from.value) {
        to.min = from.value;
      }
      const days = Math.round((to.valueAsNumber - from.valueAsNumber) / day) + 1;
      count.textContent = days > 0 ? `${days} ${days === 1 ? "day" : "days"}` : "";
    };
    const extend = (days) => () => {
      if (!from.value) {
        from.valueAsNumber = Math.floor(Date.now() / day) * day + day;
      }
      to.valueAsNumber = from.valueAsNumber + (days - 1) * day;
      changed(to);
    };
    for (const [text, days] of [["1 week", 7], ["4 weeks", 28], ["13 weeks", 91]]) {
      shown.append(choice(text, `A range of ${text}`, extend(days)));
    }
    shown.append(count);
    to.after(shown);
    from.addEventListener("input", update);
    to.addEventListener("input", update);
    update();
  }

  // What the form would cost, while a person types: the newest fields' answer, or what is wrong with a field that was left.
  function liveCost(shown) {
    const form = shown.closest("form");
    const left = new Set();
    let wrong = [], wait = 0, request = null;
    const baseName = (field) => field.name.replace(/\.(from|to)$/, "");
    const show = (text, isWrong) => {
      shown.className = isWrong ? "error" : "hint";
      // A text that is set again would be read out again.
      if (shown.textContent !== text) {
        shown.textContent = text;
      }
    };
    // What belongs to no field, such as too many searches, is shown at once.
    const isShown = ({ name }) => left.has(name) || ![...form.elements].some((field) => field.name && baseName(field) === name);
    const showWrong = () => show(wrong.find(isShown)?.text ?? "", true);
    const ask = async () => {
      request = new AbortController();
      const { signal } = request;
      try {
        const response = await fetch(`${shown.dataset.cost}?${new URLSearchParams(new FormData(form))}`, { signal });
        const answer = response.ok && !response.redirected ? await response.json() : {};
        wrong = answer.wrong ?? [];
        if (answer.cost) {
          show(answer.cost, false);
        } else {
          showWrong();
        }
      } catch {
        if (!signal.aborted) {
          show("", false);
        }
      }
    };
    form.addEventListener("input", () => {
      clearTimeout(wait);
      request?.abort();
      wait = setTimeout(ask, 300);
    });
    form.addEventListener("focusout", (event) => {
      if (event.target.name) {
        left.add(baseName(event.target));
        if (wrong.length > 0) {
          showWrong();
        }
      }
    });
    form.addEventListener("focusin", (event) => {
      if (event.target.name) {
        left.delete(baseName(event.target));
      }
    });
  }

  document.documentElement.classList.add("script");
  document.querySelectorAll("[data-cost]").forEach(liveCost);
  document.querySelectorAll("input[data-values]").forEach(chips);
  document.querySelectorAll("input[data-range]").forEach(range);
  localTimes(document);
  markCut();
  window.addEventListener("resize", markCut);
  document.addEventListener("scroll", markCut, true);
  document.addEventListener("toggle", markCut, true);
  const followed = document.querySelector("[data-events]");
  if (followed) {
    document.addEventListener("toggle", update, true);
    follow(followed);
  }
})();
