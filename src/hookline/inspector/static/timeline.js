// A turn as a timeline: bars in each other, with what each took.
import { request } from "./api.js";
import { badge, element, span, took, visible } from "./elements.js";
import { VirtualList, held } from "./list.js";

const SHOWN = {
  all: { text: "Everything", takes: () => true },
  hooks: { text: "Hooks, no handlers", takes: ({ kind }) => kind !== "handler" },
  decided: {
    text: "What decided",
    takes: ({ kind, state }) => !["hook", "handler"].includes(kind) || state !== "ok",
  },
  none: { text: "No hooks", takes: ({ kind }) => !["hook", "handler"].includes(kind) },
};
const ROW = 34;
const KEPT = "hookline.inspector.bars";

export class Timeline {
  /** `on` has `entry(id)` and `dispatch(id)`: a bar was chosen. */
  constructor(session, on) {
    Object.assign(this, { session, on });
    this.at = {};
    this.bars = [];
    this.head = element("div", { className: "tools" });
    this.scale = element("div", { className: "scale", "aria-hidden": "true" });
    this.list = new VirtualList({
      label: "Timeline", height: ROW, className: "bars",
      fetch: held(() => this.bars),
      render: (bar, row) => this.#bar(bar, row),
      choose: (bar) => (bar.record_id ? on.dispatch(bar.record_id) : on.entry(bar.entry_id)),
      isChosen: (bar) => this.#isOpen(bar),
    });
    this.note = element("p", { className: "dim note" });
    this.element = element("section", { className: "timeline", "aria-label": "Timeline" }, this.head, this.scale, this.list.element, this.note);
  }

  async load(at) {
    this.at = at;
    const turn = await request("session/turn", { id: this.session, number: at.turn });
    if (at.turn !== this.at.turn) return;
    this.turn = turn;
    this.whole = Math.max(...turn.bars.map((bar) => bar.start + bar.duration), 1e-6);
    this.#fillHead(turn);
    this.#fillScale();
    this.note.textContent = turn.traced
      ? ""
      : "The bars come from the tape. `hookline config set trace.level full` adds the hooks of later turns.";
    await this.#choose();
  }

  /** Mark the bar that is open. */
  mark(at) {
    this.at = at;
    this.list.mark();
  }

  async #choose() {
    const chosen = SHOWN[localStorage.getItem(KEPT)] ?? SHOWN.hooks;
    this.bars = this.turn.bars.filter(chosen.takes);
    this.list.element.style.height = `${Math.min(this.bars.length, 14) * ROW + 2}px`;
    await this.list.refresh();
    const open = this.bars.findIndex((bar) => this.#isOpen(bar));
    if (open >= 0) this.list.show(open);
  }

  #fillHead({ number, turns, preview, status, duration, traced }) {
    const title = element("h2", { textContent: `Turn ${number} of ${turns}` });
    const about = element("p", { className: "said" }, span("", preview));
    const picks = element("select", { id: "bars-shown", "aria-label": "What the timeline shows" });
    for (const [name, { text }] of Object.entries(SHOWN)) {
      picks.append(element("option", { value: name, textContent: text }));
    }
    picks.value = localStorage.getItem(KEPT) in SHOWN ? localStorage.getItem(KEPT) : "hooks";
    picks.addEventListener("change", () => {
      localStorage.setItem(KEPT, picks.value);
      this.#choose();
    });
    const shown = element("div", { className: "grow" }, title, about);
    this.head.replaceChildren(shown, badge(status), span("dim", took(traced ? this.whole : duration)), ...(traced ? [picks] : []));
  }

  #fillScale() {
    const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
      const mark = span("", took(part * this.whole));
      mark.style.left = `${part * 100}%`;
      return mark;
    });
    this.scale.replaceChildren(element("div", { className: "marks" }, ...marks));
  }

  #isOpen({ entry_id: entry, record_id: record, facts, kind }) {
    if (this.at.dispatch) return record === this.at.dispatch && kind === "hook";
    if (!this.at.entry || kind === "step") return false; // the model's own bar says the same
    return entry === this.at.entry || facts.result_id === this.at.entry;
  }

  #bar({ kind, name, start, duration, depth, state, detail }, row) {
    const label = element("span", { className: "label" }, span("name", name));
    label.style.setProperty("--depth", depth);
    if (state && state !== "ok") label.append(badge(state));
    const bar = element("span", { className: "bar-of", "data-kind": kind, "data-state": state });
    bar.style.left = `${(100 * Math.min(start, this.whole)) / this.whole}%`;
    bar.style.width = `${(100 * duration) / this.whole}%`;
    bar.style.maxWidth = `${100 - (100 * start) / this.whole}%`;
    const cost = span("cost", kind === "note" ? "" : took(duration));
    row.title = visible(detail);
    return [label, element("span", { className: "track" }, bar), cost];
  }
}
