// A list of any length: only the rows in sight are on the page, and only their pages are asked for.
import { element } from "./elements.js";

const PAGE = 100;
const AROUND = 8; // rows that are ready above and below what is seen

export class VirtualList {
  /**
   * `fetch(start, count)` gives `{total, rows}`; `render(row)` what stands in a row; `choose(row)` is
   * called when one is chosen; `isChosen(row)` marks the one that is open; `nothing` is said where there
   * is no row.
   */
  constructor({ label, height = 44, fetch, render, choose, isChosen = () => false, className = "", nothing = "" }) {
    Object.assign(this, { height, fetch, render, choose, isChosen });
    this.pages = new Map();
    this.drawn = new Map(); // the rows on the page, by place
    this.total = 0;
    this.active = -1;
    this.version = 0;
    this.space = element("div", { className: "space", role: "presentation" });
    this.element = element(
      "div",
      { className: `list ${className}`, role: "listbox", "aria-label": label, tabIndex: 0 },
      this.space,
    );
    this.nothing = element("p", { className: "empty", textContent: nothing, hidden: true });
    this.frame = element("div", { className: "framed" }, this.nothing, this.element);
    this.name = `list${VirtualList.count++}`;
    this.element.addEventListener("scroll", () => this.#later(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.space.addEventListener("click", (event) => {
      const row = event.target.closest("[data-place]");
      if (row) this.#open(Number(row.dataset.place));
    });
    new ResizeObserver(() => this.#later()).observe(this.element);
  }

  static count = 0;

  /** Forget what is known and ask again; the place in the list stays. */
  async refresh() {
    const version = ++this.version;
    const first = Math.floor(this.#range()[0] / PAGE);
    const found = await this.fetch(first * PAGE, PAGE);
    if (version !== this.version) return;
    this.pages = new Map([[first, found.rows]]);
    this.#size(found.total);
    this.#draw();
  }

  /** Make the row at this place the active one, and bring it into sight. */
  show(place) {
    this.active = place;
    const top = place * this.height;
    const box = this.element;
    if (top < box.scrollTop || top + this.height > box.scrollTop + box.clientHeight) {
      box.scrollTop = Math.max(0, top - box.clientHeight / 3);
    }
    this.#later();
  }

  /** Draw the rows again: what is marked has changed. */
  mark() {
    this.#draw();
  }

  get isAtEnd() {
    return this.element.scrollTop + this.element.clientHeight >= this.space.offsetHeight - this.height;
  }

  #size(total) {
    this.total = total;
    this.space.style.height = `${total * this.height}px`;
    this.element.dataset.total = total;
    this.nothing.hidden = total > 0 || !this.nothing.textContent;
  }

  #range() {
    const first = Math.floor(this.element.scrollTop / this.height) - AROUND;
    const seen = Math.ceil((this.element.clientHeight || 600) / this.height) + 2 * AROUND;
    return [Math.max(0, first), Math.max(0, first) + seen];
  }

  #later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.#draw();
    });
  }

  #draw() {
    const [first, end] = this.#range();
    const last = Math.min(end, this.total);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      const page = Math.floor(place / PAGE);
      if (!this.pages.has(page)) this.#load(page);
      rows.push(this.#row(place, this.pages.get(page)?.[place % PAGE]));
    }
    this.#put(rows);
    for (const place of this.drawn.keys()) if (place < first || place >= last) this.drawn.delete(place);
    const isSeen = this.active >= first && this.active < last;
    if (isSeen) this.element.setAttribute("aria-activedescendant", `${this.name}-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** Let rows that are there already stay untouched: somebody may be clicking on one. */
  #put(rows) {
    const wanted = new Set(rows);
    for (const row of [...this.space.children]) if (!wanted.has(row)) row.remove();
    rows.forEach((row, number) => {
      if (this.space.children[number] !== row) this.space.insertBefore(row, this.space.children[number] ?? null);
    });
  }

  #row(place, row) {
    const state = [place === this.active, Boolean(row && this.isChosen(row)), this.total].join();
    const known = this.drawn.get(place);
    if (known && known.row === row && known.state === state) return known.made;
    const made = this.#made(place, row);
    this.drawn.set(place, { row, state, made });
    return made;
  }

  #made(place, row) {
    const made = element("div", {
      className: place === this.active ? "row active" : "row",
      id: `${this.name}-${place}`,
      role: "option",
      "data-place": place,
      "aria-posinset": place + 1,
      "aria-setsize": this.total,
      "aria-selected": String(Boolean(row && this.isChosen(row))),
    });
    made.style.transform = `translateY(${place * this.height}px)`;
    made.style.height = `${this.height}px`;
    made.append(...(row ? this.render(row, made) : ["…"]));
    return made;
  }

  async #load(page) {
    const version = this.version;
    this.pages.set(page, undefined); // asked for
    try {
      const found = await this.fetch(page * PAGE, PAGE);
      if (version !== this.version) return;
      this.pages.set(page, found.rows);
      if (found.total !== this.total) this.#size(found.total);
    } catch {
      this.pages.delete(page); // the next look asks again
      return;
    }
    this.#later();
  }

  #open(place) {
    const row = this.pages.get(Math.floor(place / PAGE))?.[place % PAGE];
    this.active = place;
    if (row) this.choose(row);
    this.#draw();
  }

  #key(event) {
    const seen = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: seen, PageUp: -seen, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      const wanted = this.active + steps[event.key];
      this.show(Math.max(0, Math.min(this.total - 1, wanted)));
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.active >= 0) this.#open(this.active);
    } else return;
    event.preventDefault();
  }
}

/** What a list of rows that are all there already is fetched from. */
export const held = (rows) => async (start, count) => ({
  total: rows().length,
  rows: rows().slice(start, start + count),
});
