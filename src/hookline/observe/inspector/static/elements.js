// Building pieces of the page. Everything that was recorded arrives here as text and becomes text nodes:
// nothing on this page is ever parsed as HTML, and nothing in a text stays unseen.

/** An element with properties, attributes (`data-…`, `aria-…`, `role`) and children. */
export function element(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (key.includes("-") || key === "role") made.setAttribute(key, value);
    else made[key] = key === "textContent" ? visible(String(value)) : value;
  }
  const there = children.filter((child) => child !== undefined && child !== null);
  made.append(...there.map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** A piece of text in a class of its own. */
export const span = (className, text, given = {}) =>
  element("span", { className, textContent: text ?? "", ...given });

/** Say something to people who do not see the page. */
export function announce(text) {
  byId("announcer").textContent = text.slice(0, 500);
}

/** A text with what nobody sees written out: signs without width, or that turn the writing round. */
export const visible = (text) =>
  text.replace(
    /[\p{DI}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}|(?![\n\t])\p{Cc}/gu,
    (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`,
  );

/** Text or JSON in a box of its own. */
export function code(value, label) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return element(
    "pre",
    { tabIndex: 0, role: "region", "aria-label": label },
    element("code", { textContent: text ?? "" }),
  );
}

/** A unified diff with its lines coloured; the signs stay, so that colour is not all there is. */
export function diff(text, label = "Changes") {
  const lines = text.split("\n").map((line) => {
    const kind = /^(---|\+\+\+)( |$)/.test(line)
      ? "file"
      : { "+": "added", "-": "removed", "@": "hunk" }[line[0]];
    return element("span", { className: kind ? `line ${kind}` : "line", textContent: `${line}\n` });
  });
  const given = { className: "diff", tabIndex: 0, role: "region", "aria-label": label };
  return element("pre", given, element("code", {}, ...lines));
}

const BADGES = {
  ok: "ok", ran: "ok", completed: "ok", allow: "ok", allowed: "ok", approved: "ok", loaded: "ok",
  denied: "bad", deny: "bad", different: "bad", failed: "bad", error: "bad", raised: "bad", "timed out": "bad",
  asked: "ask", ask: "ask", random: "ask", rewrote: "ask", rewritten: "ask", "cut off": "ask", cancelled: "ask", "not loaded": "ask",
  running: "live", started: "live",
};

const DID = { none: "said nothing", value: "answered" };

/** What a handler did, as people say it. */
export const did = (word) => DID[word] ?? word;

/** A state in one word. */
export const badge = (state) =>
  element("span", { className: `badge ${BADGES[state] ?? ""}`, textContent: state });

/** A named fact; nothing where there is none. */
export function facts(pairs) {
  const shown = Object.entries(pairs).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const rows = shown.map(([name, value]) => {
    const said = value instanceof Node ? value : String(value);
    return element("div", {}, element("dt", { textContent: name }), element("dd", {}, said));
  });
  return rows.length ? element("dl", { className: "facts" }, ...rows) : undefined;
}

/** A part of a screen under a heading. */
export function section(title, ...children) {
  return element("section", {}, element("h3", { textContent: title }), ...children);
}

/** A message where there is nothing else. */
export const empty = (text) => element("p", { className: "empty", textContent: text });

/** How many there are of something. */
export const counted = (count, one, more) => `${count.toLocaleString()} ${count === 1 ? one : more}`;

/** Seconds as people say them. */
export function took(seconds) {
  if (seconds === undefined || seconds === null) return "";
  if (seconds < 0.001) return `${Math.max(0, Math.round(seconds * 1e6))} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.1 ? 1 : 0)} ms`;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** A moment: the time of today, the date of another day. */
export function clock(seconds) {
  const when = new Date(seconds * 1000);
  const today = new Date().toDateString() === when.toDateString();
  return today
    ? when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })
    : when.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

/** A moment as an element that says it exactly, too. */
export const moment = (seconds) =>
  element("time", {
    textContent: clock(seconds),
    dateTime: new Date(seconds * 1000).toISOString(),
    title: new Date(seconds * 1000).toLocaleString(),
  });
