// Which session is open, and the list of those that there are.
import { request } from "./connection.js";
import { byId, element } from "./elements.js";

const KEPT = "hookline.session";
const WIDE = matchMedia("(min-width: 900px)");

/** What stands after the # of the address: `#session=…`, and a token that is taken out at once. */
export function fragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  return { session: given.get("session"), token: given.get("token") };
}

/** The session to begin with: that of the address, the last one of this browser, or a new one. */
export const first = () => fragment().session || localStorage.getItem(KEPT) || fresh();

/** A name for a new session. */
export function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return `web:${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const address = (session) => `#session=${encodeURIComponent(session)}`;

export class Sessions {
  /** `open(session)` is called when one is chosen. */
  constructor(open) {
    this.list = byId("session-list");
    this.panel = byId("sessions");
    this.menu = byId("menu");
    this.menu.addEventListener("click", () =>
      this.#fold(this.menu.getAttribute("aria-expanded") === "true"),
    );
    byId("scrim").addEventListener("click", () => this.#fold(true));
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.#fold(true));
    byId("new-session").addEventListener("click", () => (location.hash = address(fresh())));
    this.list.addEventListener("click", () => this.#fold(true));
    WIDE.addEventListener("change", () => this.#fold(true, false));
    addEventListener("hashchange", () => {
      const { session } = fragment();
      if (!session || session === this.current) return;
      this.#fold(true);
      open(session);
    });
    this.#fold(true, false);
  }

  /** Mark the one that is open, in the list, the address and this browser. */
  choose(session) {
    this.current = session;
    localStorage.setItem(KEPT, session);
    if (fragment().session !== session) history.replaceState(null, "", address(session));
    this.#mark();
  }

  /** Whether the list has the session that is open. */
  get isListed() {
    return [...this.list.querySelectorAll("a")].some((link) => link.title === this.current);
  }

  /** Fetch the list anew; asked in the meantime, once more, since it may be old already. */
  async refresh() {
    this.wanted = true;
    if (this.fetching) return;
    this.fetching = true;
    try {
      while (this.wanted) {
        this.wanted = false;
        await this.#fetch();
      }
    } finally {
      this.fetching = false;
    }
  }

  async #fetch() {
    const found = await request("/api/sessions?limit=100");
    const lines = found.map(({ id, name, preview, updated }) => {
      const when = element("time", {
        textContent: ago(updated),
        dateTime: new Date(updated * 1000).toISOString(),
      });
      const title = element("span", { className: "title", textContent: name || preview || id });
      return element("li", {}, element("a", { href: address(id), title: id }, title, when));
    });
    this.list.replaceChildren(...lines);
    this.#mark();
  }

  #mark() {
    for (const link of this.list.querySelectorAll("a")) {
      if (link.title === this.current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  /** On a narrow screen the list is a drawer. What is folded away cannot be reached by keyboard. */
  #fold(folded, focus = true) {
    const drawer = !WIDE.matches;
    const wasOpen = this.menu.getAttribute("aria-expanded") === "true";
    this.menu.setAttribute("aria-expanded", String(!folded && drawer));
    this.panel.inert = folded && drawer;
    byId("scrim").hidden = folded || !drawer;
    if (!drawer || !focus) return;
    if (!folded) {
      byId("new-session").focus();
      this.refresh().catch(() => {}); // a list that is a little old is still a list
    } else if (wasOpen) this.menu.focus();
  }
}

function ago(seconds) {
  const passed = Date.now() / 1000 - seconds;
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 86_400) return `${Math.floor(passed / 3600)} h`;
  return new Date(seconds * 1000).toLocaleDateString();
}
