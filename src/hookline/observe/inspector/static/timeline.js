// A turn as a timeline: bars in each other, with what each took.
import { quiet, request } from "./api.js";
import { badge, element, span, took, visible } from "./elements.js";
import { VirtualList } from "./list.js";

const SHOWN = {
  all: "Everything",
  hooks: "Hooks, no handlers",
  decided: "What decided",
  none: "No hooks",
};
const ROW = 34;
const KEPT = "hookline.inspector.bars";

const shown = () => (localStorage.getItem(KEPT) in SHOWN ? localStorage.getItem(KEPT) : "decided");

export class Timeline {
  /** `on` has `entry(id)` and `dispatch(id)`: a bar was chosen. */
  constructor(session, on, failed) {
    Object.assign(this, { session, on, failed });
    this.at = {};
    this.hooks = false; // whether the hooks are among the bars yet
    this.head = element("div", { className: "tools" });
    this.summary = element("section", { className: "summary", "aria-label": "Tool calls" });
    this.scale = element("div", { className: "scale", "aria-hidden": "true" });
    this.list = new VirtualList({
      label: "Timeline", height: ROW, className: "bars",
      fetch: (start, count) => this.#fetch(start, count),
      render: (bar, row) => this.#bar(bar, row),
      choose: (bar) => (bar.record_id ? on.dispatch(bar.record_id) : on.entry(bar.entry_id)),
      isChosen: (bar) => this.#isOpen(bar),
    });
    this.note = element("p", { className: "dim note" });
    this.element = element("section", { className: "timeline", "aria-label": "Timeline" }, this.head, this.summary, this.scale, this.list.element, this.note);
  }

  /** Show a turn: at once what the tape knows of it, and the hooks when the trace was read. */
  async load(at) {
    this.at = at;
    await Promise.all([this.#fill(), this.#sum()]);
    if (!this.hooks && shown() !== "none") this.#addHooks().catch(this.failed);
  }

  /** The turn in a sentence, and each of its calls with what happened to it. */
  async #sum() {
    const { sentence, calls } = await request("session/summary", { id: this.session, number: this.at.turn });
    const said = element("p", { className: "sentence", textContent: sentence });
    const lines = calls.map((call) => {
      const line = element("button", { type: "button", className: "call", "data-outcome": call.outcome });
      line.append(badge(call.outcome), span("name", call.tool), element("code", { className: "asked", textContent: call.asked }));
      const why = [call.by && `${call.outcome} by ${call.by}`, call.reason].filter(Boolean).join(": ");
      if (why) line.append(span("why", why));
      line.addEventListener("click", () => this.on.entry(call.entry_id));
      return element("li", {}, line);
    });
    this.summary.replaceChildren(said, ...(lines.length ? [element("ul", { className: "calls" }, ...lines)] : []));
  }

  async #addHooks() {
    await quiet();
    if (!this.element.isConnected) return; // another turn is open by now
    this.hooks = true;
    await this.#fill();
  }

  /** Bring the bar that is open back into sight: the list has become shorter or longer. */
  keepInSight() {
    if (this.list.active >= 0) this.list.show(this.list.active);
  }

  /** Mark the bar that is open. */
  mark(at) {
    this.at = at;
    this.list.mark();
  }

  async #fetch(start, count) {
    const { turn: number, entry, dispatch } = this.at;
    const wanted = { id: this.session, number, entry, dispatch, start, count, shown: shown(), hooks: this.hooks };
    // While the rest is read, the first bars are enough, unless one of the others is to be seen.
    if (!this.hooks && wanted.shown !== "none" && !entry && !dispatch) wanted.glance = true;
    const turn = await request("session/turn", wanted);
    if (wanted.hooks === this.hooks) this.#take(turn);
    return { total: turn.total, rows: turn.bars };
  }

  #take(turn) {
    this.turn = turn;
    this.whole = Math.max(turn.whole, 1e-6);
    this.#fillHead(turn);
    this.#fillScale();
    this.list.element.style.height = `${Math.min(turn.total, 14) * ROW + 2}px`;
    this.note.textContent = turn.traced === false
      ? "The bars come from the tape: in this turn no hook decided anything, or the trace was off. `hookline config set trace.level full` adds every hook of later turns."
      : "";
  }

  async #fill() {
    await this.list.refresh();
    if (this.turn.open !== null) this.list.show(this.turn.open);
  }

  #fillHead({ number, turns, preview, status, duration, traced }) {
    const title = element("h2", { textContent: `Turn ${number} of ${turns}` });
    const about = element("p", { className: "said" }, span("", preview));
    const said = element("div", { className: "grow" }, title, about);
    const picks = traced || shown() === "none" ? [this.#picks()] : [];
    const lasted = duration === null ? [] : [span("dim", took(duration))]; // not known at a first glance
    this.head.replaceChildren(said, badge(status), ...lasted, ...picks);
  }

  #picks() {
    if (this.picks) return this.picks; // somebody may be choosing
    this.picks = element("select", { id: "bars-shown", "aria-label": "What the timeline shows" });
    for (const [name, text] of Object.entries(SHOWN)) {
      this.picks.append(element("option", { value: name, textContent: text }));
    }
    this.picks.value = shown();
    this.picks.addEventListener("change", () => {
      localStorage.setItem(KEPT, this.picks.value);
      this.hooks = true;
      this.#fill().catch(this.failed);
    });
    return this.picks;
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

  #bar({ kind, name, start, duration, depth, state, detail, asked }, row) {
    const label = element("span", { className: "label" }, span("name", name));
    if (asked) label.append(span("dim asked", asked));
    label.style.setProperty("--depth", depth);
    if (state && state !== "ok") label.append(badge(state));
    const bar = element("span", { className: "bar-of", "data-kind": kind, "data-state": state });
    bar.style.left = `${(100 * Math.min(start, this.whole)) / this.whole}%`;
    bar.style.width = `${(100 * duration) / this.whole}%`;
    bar.style.maxWidth = `${100 - (100 * start) / this.whole}%`;
    const cost = span("cost", kind === "note" ? "" : took(duration));
    row.title = visible([asked, detail].filter(Boolean).join("\n"));
    return [label, element("span", { className: "track" }, bar), cost];
  }
}
