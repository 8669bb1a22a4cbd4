// The conversation on the page: what was said, in order, the latest in view.
import { Answer, media } from "./answer.js";
import { byId, element } from "./elements.js";
import { markdown } from "./markdown.js";

const PAGE = 60; // turns of the history that are shown at once
const NEAR = 80; // pixels from the end that still count as reading the end

export class Conversation {
  constructor() {
    this.log = byId("log");
    this.turns = byId("turns");
    this.latest = byId("latest");
    this.top = 0;
    this.following = true;
    this.clear();
    this.log.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.latest.addEventListener("click", () => this.toEnd());
    for (const part of [this.turns, byId("approvals"), this.log])
      new ResizeObserver(() => this.following && this.#jump()).observe(part);
  }

  clear() {
    for (const player of this.turns.querySelectorAll("audio")) URL.revokeObjectURL(player.src);
    this.turns.replaceChildren();
    this.answers = new Map(); // by the id of their message
    this.questions = new Map(); // the nodes of messages, by their id
    this.calls = new Map();
    this.toEnd();
  }

  /** What a person said; the node takes `data-state` while it is on its way. */
  said(id, text, parts = []) {
    const turn = person(text, parts);
    this.turns.querySelector(".welcome")?.remove();
    this.questions.get(id)?.remove();
    this.questions.delete(id); // it goes to the end
    this.questions.set(id, turn);
    this.turns.append(turn);
    return turn;
  }

  /** Begin the answer to a message: below it, and above messages that still wait for theirs. */
  begin(id) {
    const answer = new Answer(this.calls);
    const own = this.questions.get(id);
    const waiting = [...this.questions].find(([other]) => !this.answers.has(other))?.[1];
    this.turns.querySelector(".welcome")?.remove();
    if (own) own.after(answer.node);
    else if (waiting) waiting.before(answer.node);
    else this.turns.append(answer.node);
    this.answers.set(id, answer);
    return answer;
  }

  note(text, kind = "") {
    const note = element("p", { className: `note ${kind}`, textContent: text });
    this.turns.append(note);
    return note;
  }

  /** Show what was said before; of a long conversation the last part, and more when asked. */
  history(entries, busy = false) {
    this.clear();
    if (!entries.length)
      this.turns.append(element("p", { className: "welcome", textContent: "What can I do for you?" }));
    let from = Math.max(0, entries.length - PAGE);
    const earlier = element("button", {
      type: "button",
      className: "earlier",
      textContent: "Show earlier messages",
    });
    earlier.addEventListener("click", () => {
      const height = this.log.scrollHeight;
      const until = from;
      from = Math.max(0, from - PAGE);
      earlier.after(...this.#nodes(entries.slice(from, until)));
      if (!from) earlier.remove();
      this.log.scrollTop += this.log.scrollHeight - height;
    });
    if (from) this.turns.append(earlier);
    this.turns.append(...this.#nodes(entries.slice(from)));
    if (!busy) for (const call of this.calls.values()) call.stop();
    this.toEnd();
  }

  #nodes(entries) {
    const nodes = [];
    let answer;
    for (const entry of entries) {
      if (entry.role === "user") {
        answer = undefined;
        nodes.push(person(entry.text));
        if (!entry.outcome) continue;
      }
      if (!answer) nodes.push((answer = new Answer(this.calls)).node);
      this.#remember(answer, entry);
    }
    return nodes;
  }

  #remember(answer, entry) {
    if (entry.reasoning) {
      const text = element("div", { className: "prose" }, ...markdown(entry.reasoning));
      answer.node.append(
        element(
          "details",
          { className: "reasoning" },
          element("summary", { textContent: "Reasoning" }),
          text,
        ),
      );
    }
    if (entry.role === "tool") {
      answer.result({
        call_id: entry.call_id,
        name: entry.name,
        content: entry.text,
        is_error: entry.is_error,
      });
      return;
    }
    if (entry.text && entry.role === "assistant")
      answer.node.append(element("div", { className: "prose" }, ...markdown(entry.text)));
    if (entry.outcome) answer.outcome(entry.outcome, entry.reason);
    for (const call of entry.tool_calls)
      answer.call({ call_id: call.id, name: call.name, arguments: call.arguments });
  }

  toEnd() {
    this.following = true;
    this.latest.hidden = true;
    this.#jump();
  }

  #jump() {
    this.log.scrollTop = this.log.scrollHeight;
    this.top = this.log.scrollTop;
  }

  // Only a person scrolls up. What is added below, or a card that takes room, leaves the top where it is.
  #scrolled() {
    const left = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight;
    const isUp = this.log.scrollTop < this.top;
    this.top = this.log.scrollTop;
    if (left < NEAR) this.following = true;
    else if (isUp) this.following = false;
    this.latest.hidden = this.following;
  }
}

/** The words of a person are shown as they were typed. */
function person(text, parts = []) {
  const bubble = element("div", { className: "bubble" });
  if (text) bubble.append(element("p", { textContent: text }));
  bubble.append(...parts.map((part) => media(part)));
  return element("article", { className: "turn person", "aria-label": "You" }, bubble);
}
