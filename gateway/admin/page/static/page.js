// Keeps the page up to date: at each event, the page fetches its own address again, and replaces the
// parts marked data-live. Everything else works without this script.
"use strict";

(() => {
  const status = document.getElementById("live");
  const word = status.querySelector(".word");
  const name = word.textContent;
  // Without an event for this time in milliseconds, the gateway counts as lost; a `beat` comes each 5 s.
  const SILENCE = 13000;
  // While too many pages are open, this one tries again after this time in milliseconds.
  const FULL = 30000;
  let stream, silent, fetching = false, again = false, seen = new Date();

  const two = (number) => String(number).padStart(2, "0");
  const clock = (date) => `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;

  function show(state, text) {
    status.className = `live ${state}`;
    if (word.textContent !== text) word.textContent = text;
  }

  function lost() {
    show("lost", `Lost since ${clock(seen)}`);
    stream.close();
    clearTimeout(silent);
    silent = setTimeout(listen, 2000);
  }

  function full() {
    show("full", "Updated each 30 s: 32 pages are open");
    stream.close();
    clearTimeout(silent);
    silent = setTimeout(listen, FULL);
    refresh();
  }

  function alive() {
    seen = new Date();
    const back = status.matches(".lost, .full");
    show("on", name);
    clearTimeout(silent);
    silent = setTimeout(lost, SILENCE);
    return back;
  }

  function listen() {
    stream = new EventSource(status.dataset.events);
    stream.addEventListener("error", lost);
    stream.addEventListener("full", full);
    // The page is as new as the stream, unless the stream was lost.
    stream.addEventListener("start", () => { if (alive()) refresh(); });
    for (const event of ["changed", "beat"]) {
      stream.addEventListener(event, () => { alive(); refresh(); });
    }
  }

  async function refresh() {
    if (document.hidden) { again = true; return; }
    if (fetching) { again = true; return; }
    fetching = true;
    again = false;
    try {
      const answer = await fetch(location.href.split("#")[0], { headers: { Accept: "text/html" } });
      if (answer.redirected) location.reload();
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      localize(fresh.body);
      for (const old of document.querySelectorAll("[data-live]")) {
        const now = fresh.getElementById(old.id);
        if (now) prepare(old, now);
        if (now && now.innerHTML !== old.innerHTML && !busy(old)) replace(old, now);
      }
      if (answer.ok && fresh.title) document.title = fresh.title;
    } catch {
      // The stream reports a lost gateway, and connects again.
    }
    fetching = false;
    if (again) setTimeout(refresh, 500);
  }

  // Whether a part has the focus in a field, or a changed field.
  function busy(part) {
    const field = document.activeElement;
    if (part.contains(field) && field.matches("input, textarea, select")) return true;
    return [...part.querySelectorAll("input, textarea")].some(
      (one) => one.type !== "hidden" && one.value !== one.defaultValue);
  }

  // Copies the state of the old content, so that equal content is not replaced.
  function prepare(old, now) {
    for (const details of now.querySelectorAll("details[id]")) {
      const former = document.getElementById(details.id);
      if (former && old.contains(former)) details.open = former.open;
    }
    for (const button of now.querySelectorAll("button[data-copy]")) button.hidden = false;
  }

  // Converts times in UTC to the time zone of the browser.
  const MOMENT = /\b(\d{1,2} [A-Z][a-z]{2} \d{4}), (\d\d:\d\d) UTC/g;
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const zone = (date) => new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
    .formatToParts(date).find((part) => part.type === "timeZoneName").value;
  const local = (date) => `${date.getDate()} ${MONTHS[date.getMonth()]} ${date.getFullYear()}, `
    + `${two(date.getHours())}:${two(date.getMinutes())} ${zone(date)}`;

  function localize(root) {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (!text.data.includes(" UTC") || text.parentElement.closest("pre, textarea, .client")) continue;
      text.data = text.data.replace(MOMENT, (_, day, time) => local(new Date(`${day} ${time} UTC`)));
    }
    for (const time of root.querySelectorAll("time[data-clock]")) {
      const date = new Date(time.dateTime);
      time.textContent = `${two(date.getHours())}:${two(date.getMinutes())}`;
    }
  }

  const KEYED = "a, button, summary, [tabindex]";

  function replace(old, now) {
    const held = [...old.querySelectorAll(KEYED)].indexOf(document.activeElement);
    const places = [...old.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]);
    old.replaceChildren(...document.importNode(now, true).childNodes);
    [...old.querySelectorAll(".scroll, pre")].forEach((each, index) => {
      [each.scrollLeft, each.scrollTop] = places[index] || [0, 0];
    });
    if (held >= 0) [...old.querySelectorAll(KEYED)][held]?.focus({ preventScroll: true });
    ready(old);
  }

  // Shows the buttons that copy a text, which are hidden without a script.
  function ready(part) {
    for (const button of part.querySelectorAll("button[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        const label = button.textContent;
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = label; }, 1500);
      });
    }
  }

  // Removes the confirmation of an action from the address, so that a reload does not show it again.
  if (location.search.includes("done=")) {
    const address = new URL(location.href);
    address.searchParams.delete("done");
    history.replaceState(null, "", address);
  }

  // A refused form has its own address, which has no page. The address of the view replaces it.
  const refused = document.querySelector("[data-address]");
  if (refused) history.replaceState(null, "", refused.dataset.address);

  // Opens all folded parts on a wide screen, and otherwise the part that the address names.
  function unfold() {
    const target = document.getElementById(location.hash.slice(1));
    const wide = matchMedia("(min-width: 46rem)").matches;
    for (const fold of document.querySelectorAll("details.fold")) {
      if (wide || (target && target.contains(fold))) fold.open = true;
    }
  }

  addEventListener("hashchange", unfold);
  unfold();
  localize(document.body);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) refresh(); });
  ready(document);
  listen();
})();
