// The frame of the inspector: which screen is open, by what stands after the # of the address.
import { Unauthorised, request, takeToken, token } from "./api.js";
import { byId, empty, visible } from "./elements.js";

// Each is fetched when it is first opened.
const SCREENS = {
  sessions: async () => (await import("./sessions.js")).sessionsScreen,
  session: async () => (await import("./session.js")).sessionScreen,
  compare: async () => (await import("./compare.js")).compareScreen,
  live: async () => (await import("./live.js")).liveScreen,
  decisions: async () => (await import("./decisions.js")).decisionsScreen,
  hooks: async () => (await import("./hooks.js")).hooksScreen,
  plugins: async () => (await import("./plugins.js")).pluginsScreen,
};

let last; // the screen before
let open; // the screen that is open: its name, what it is of, how to leave it and how to go on in it

/** The parts of the address: `#/session/web%3A1/turn/3?hook=x`. */
function parts() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  return { name: name || "sessions", rest, query: new URLSearchParams(query) };
}

async function show() {
  const { name, rest, query } = parts();
  if (name === "main") return; // the link that skips the navigation
  // Another turn or entry of the same session is not another screen, nor is another hook.
  const key = ["session", "compare"].includes(name) ? rest[0] : undefined;
  if (open?.name === name && open.key === key && open.go) return open.go(rest, query);
  open?.leaving.abort();
  const leaving = new AbortController();
  const screen = SCREENS[name];
  open = { name, key, leaving };
  const current = open;
  mark(name);
  const place = byId("main");
  place.replaceChildren();
  place.className = name;
  say("");
  if (!screen) return void place.append(empty("There is no such screen."));
  const context = { place, rest, query, signal: leaving.signal, failed };
  try {
    const made = await screen();
    if (leaving.signal.aborted) return;
    const hadFocus = document.activeElement !== document.body || !last;
    last = name;
    current.go = await made(context);
    // What was chosen with the keyboard is gone with its screen: go on in the new one.
    if (!hadFocus && document.activeElement === document.body) (place.querySelector(".list") ?? place).focus();
  } catch (problem) {
    if (!leaving.signal.aborted) failed(problem);
  }
}

function mark(name) {
  const shown = { session: "sessions", compare: "sessions" }[name] ?? name;
  for (const link of document.querySelectorAll("#screens a")) {
    if (link.hash === `#/${shown}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Tell what went wrong, or ask for the token. */
export function failed(problem) {
  if (problem instanceof Unauthorised) {
    if (token.get()) say(problem.message);
    byId("token-form").hidden = false;
    byId("token").focus();
  } else say(problem.message);
}

function say(text) {
  const banner = byId("banner");
  banner.textContent = visible(text);
  banner.hidden = !text;
}

byId("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = byId("token").value.trim(); // it may be the whole link
  token.set(new URLSearchParams(typed.split("#")[1] ?? "").get("token") ?? typed);
  try {
    await request("about");
    location.reload();
  } catch (problem) {
    say(problem.message);
  }
});

byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
takeToken();
addEventListener("hashchange", () => {
  takeToken();
  show();
});
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") event.preventDefault();
  else failed(event.reason);
});
show();
