// One session: its turns, its events and its tree on one side, a turn with its timeline on the other.
import { listen, quiet, request } from "./api.js";
import { badge, counted, element, empty, moment, span, took, visible } from "./elements.js";
import { dispatchDetail, entryDetail, showSeen } from "./detail.js";
import { VirtualList, held } from "./list.js";
import { sessionAddress } from "./sessions.js";
import { soon } from "./soon.js";
import { Timeline } from "./timeline.js";

const VIEWS = { turns: "Turns", events: "Events", tree: "Tree" };

export async function sessionScreen({ place, rest, signal, failed }) {
  const [id] = rest;
  const screen = new Session(id, place, failed);
  try {
    await Promise.all([screen.head(), screen.go(rest)]);
  } catch (problem) {
    if (problem.status !== 404 || screen.isThere) throw problem;
    const all = element("a", { href: "#/sessions", textContent: "All sessions" });
    place.replaceChildren(element("p", { className: "empty" }, `There is no session “${id}”. `, all));
    return;
  }
  const changed = soon(() => screen.refresh(), failed);
  listen({ session: id, dispatches: "false" }, signal, {
    // Also when watching begins: what happened since the first look is not told again.
    frame: ({ type, session }) => (type !== "entry" || session === id) && changed(),
  }).catch(failed);
  return (rest) => screen.go(rest).catch(failed);
}

class Session {
  constructor(id, place, failed) {
    Object.assign(this, { id, failed });
    this.at = {}; // what is open: turn, entry, dispatch
    this.title = element("h2");
    this.about = element("p", { className: "dim" });
    this.tabs = element("nav", { className: "tabs", "aria-label": "Views of the session" });
    this.left = element("div", { className: "left" });
    this.right = element("div", { className: "right" });
    const compare = element("a", {
      className: "button", href: `#/compare/${encodeURIComponent(id)}`, textContent: "Compare with a replay",
    });
    const head = element("div", { className: "tools head" }, element("div", { className: "grow" }, this.title, this.about), compare);
    this.halves = element("div", { className: "halves" }, this.left, this.right);
    place.append(head, this.halves);
    this.lists = this.#lists();
  }

  #lists() {
    const make = (label, path, render, choose, isChosen, height, nothing) =>
      new VirtualList({
        label, render, choose, isChosen, height, nothing,
        fetch: (start, count) => request(path, { id: this.id, start, count }),
      });
    this.lines = [];
    return {
      turns: make("Turns", "session/turns", turnRow, (turn) => this.#to("turn", turn.number), (turn) => turn.number === this.at.turn, 56, "No turn was run in this session. What is on its tape is under Events."),
      events: make("Events", "session/events", eventRow, (event) => this.#toEntry(event), (event) => event.id === this.at.entry, 40),
      tree: new VirtualList({
        label: "Tree", height: 40, render: treeRow, fetch: held(() => this.lines), className: "tree",
        choose: (line) => this.#toEntry(line), isChosen: (line) => line.id === this.at.entry,
        nothing: "Nothing was said in this session.",
      }),
    };
  }

  #address(...rest) {
    return sessionAddress(this.id, ...(this.view === "turns" ? [] : [this.view]), ...rest);
  }

  /** Go to another place in the session; the list that is seen stays. */
  #to(...rest) {
    location.hash = this.#address(...rest);
  }

  /** An entry is shown in its turn, where it has one. */
  #toEntry({ id, turn }) {
    if (id) this.#to(...(turn ? ["turn", turn] : []), "entry", id);
  }

  async head() {
    const found = await request("session", { id: this.id });
    this.isThere = true;
    this.title.textContent = this.title.title = visible(found.name || this.id);
    const about = [found.name && this.id, counted(found.entries, "entry", "entries"), counted(found.turns, "turn", "turns")];
    this.about.replaceChildren(visible(about.filter(Boolean).join(" · ")), " · ", moment(found.updated));
    if (found.busy) this.about.append(" ", badge("running"));
  }

  /** Go to a place in the session: `events|tree? turn/N? entry|dispatch/ID?`. */
  async go([, ...rest]) {
    const view = rest[0] in VIEWS ? rest.shift() : "turns";
    const at = {};
    for (let place = 0; place + 1 < rest.length; place += 2) at[rest[place]] = rest[place + 1];
    if (at.turn) at.turn = Number(at.turn);
    if (at.entry && !at.turn) at.turn = (await this.#entry(at.entry)).turn ?? undefined;
    const before = this.at;
    this.at = at;
    const parts = [];
    if (view !== this.view) parts.push(this.#view(view));
    else this.lists[view].mark();
    this.halves.classList.toggle("opened", Boolean(at.turn || at.entry));
    if (at.turn !== before.turn || !this.timeline) parts.push(this.#turn());
    await Promise.all([...parts, this.#detail()]);
  }

  /** An entry, without who saw it: that is read from the trace, which takes longer. */
  #entry(entry) {
    return request("session/entry", { id: this.id, entry, hooks: false });
  }

  async #view(view) {
    this.view = view;
    const links = Object.entries(VIEWS).map(([name, text]) => {
      const link = element("a", { href: sessionAddress(this.id, ...(name === "turns" ? [] : [name])), textContent: text });
      if (name === view) link.setAttribute("aria-current", "page");
      return link;
    });
    this.tabs.replaceChildren(...links);
    this.left.replaceChildren(this.tabs, this.lists[view].frame);
    await this.#fill();
    if (view === "turns" && this.at.turn) this.lists.turns.show(this.at.turn - 1);
  }

  async #fill() {
    if (this.view === "tree") {
      const tree = await request("session/tree", { id: this.id });
      this.lines = tree.lines.map((line) => ({ ...line, isLeaf: line.id === tree.here }));
      if (tree.more) this.lines.push({ depth: 0, preview: `… ${tree.more} more`, kind: "", labels: [] });
    }
    await this.lists[this.view].refresh();
  }

  async refresh() {
    await this.head();
    await this.#fill();
    const isLast = this.timeline && this.at.turn && this.timeline.turn?.turn_id && this.timeline.turn.status === "started";
    if (isLast) await this.timeline.load(this.at);
  }

  async #turn() {
    if (!this.at.turn) {
      this.timeline = undefined;
      this.detail = element("div", { className: "detail" });
      const hint = this.at.entry ? undefined : empty("Choose a turn to see what happened in it.");
      this.right.replaceChildren(...[hint, this.detail].filter(Boolean));
      return;
    }
    const back = element("a", { className: "back", href: this.#address(), textContent: "← Back to the list" });
    this.timeline = new Timeline(this.id, {
      entry: (entry) => this.#to("turn", this.at.turn, "entry", entry),
      dispatch: (record) => this.#to("turn", this.at.turn, "dispatch", record),
    }, this.failed);
    this.detail = element("div", { className: "detail" });
    this.right.replaceChildren(back, this.timeline.element, this.detail);
    await this.timeline.load(this.at);
  }

  async #detail() {
    this.timeline?.mark(this.at);
    const { turn, entry, dispatch } = this.at;
    const wanted = JSON.stringify(this.at);
    const isOver = () => wanted !== JSON.stringify(this.at); // somebody went on in the meantime
    if (entry) {
      const found = await this.#entry(entry);
      if (isOver()) return;
      this.#open(entryDetail(found));
      if (found.call) this.#addSeen(entry, isOver).catch(this.failed);
    } else if (dispatch) {
      const found = await request("session/dispatch", { id: this.id, number: turn, record: dispatch });
      if (!isOver()) this.#open(dispatchDetail(found));
    } else this.#open();
  }

  async #addSeen(entry, isOver) {
    await quiet();
    if (isOver()) return;
    const { dispatches } = await request("session/entry", { id: this.id, entry });
    if (!isOver()) showSeen(this.detail, dispatches);
  }

  #open(found) {
    this.detail.replaceChildren(...(found ? [found] : []));
    this.right.classList.toggle("explains", Boolean(found));
    this.timeline?.keepInSight();
    this.detail.dataset.of = this.at.entry ?? this.at.dispatch ?? "";
    if (found && matchMedia("(max-width: 899px)").matches) {
      this.right.scrollTop = this.detail.offsetTop - this.right.offsetTop;
    }
  }
}

function turnRow({ number, preview, started, duration, status, tools }) {
  const about = `${counted(tools, "tool call", "tool calls")} · ${took(duration)}`;
  const shown = status === "completed" ? [] : [badge(status)];
  return [
    span("number", number),
    element("div", { className: "grow" }, span("name", preview || "(nothing said)"), span("dim", about)),
    ...shown,
    moment(started),
  ];
}

function eventRow({ kind, role, preview, time }) {
  return [span("kind", role || kind, { "data-kind": role || kind }), span("grow name", preview), moment(time)];
}

function treeRow({ depth, kind, role, preview, labels, on_branch: onBranch, isLeaf, first }, row) {
  row.classList.toggle("aside", !onBranch && kind !== "");
  const line = span("grow name", preview || `(${kind})`);
  line.style.paddingLeft = `${Math.min(depth, 12) * 18}px`;
  if (first && depth) line.prepend(element("span", { className: "fork", textContent: "└ " }));
  const marks = (labels ?? []).map((label) => span("badge ask", label));
  if (isLeaf) marks.push(span("badge live", "here"));
  return [span("kind", role || kind, { "data-kind": role || kind }), line, ...marks];
}
