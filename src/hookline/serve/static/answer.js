// What is shown of one answer: text and reasoning as they grow, tool calls, sounds and pictures.
import { announce, code, diff, element, isDiff, visible } from "./elements.js";
import { Growing, markdown } from "./markdown.js";

const LONG = 20_000; // characters of a result that are shown before somebody asks for more

/** The answer to one message. */
export class Answer {
  /** `calls` has the tool calls of the whole conversation by their id. */
  constructor(calls) {
    this.calls = calls;
    this.node = element("article", { className: "turn answer", "aria-label": "Answer" });
    this.growing = undefined; // the text or the reasoning that grows
    this.kind = "";
    this.said = undefined; // the last text, until a tool is called
    this.speaks = false; // whether sounds are played as they come
  }

  text(delta) {
    this.#grow("text", delta);
  }

  reasoning(delta) {
    this.#grow("reasoning", delta);
  }

  #grow(kind, delta) {
    if (this.kind !== kind) {
      this.#settle();
      this.kind = kind;
      const place = element("div", { className: "prose" });
      this.growing = new Growing(place);
      if (kind === "reasoning") {
        this.thought = element(
          "details",
          { className: "reasoning", open: true },
          element("summary", { textContent: "Reasoning" }),
          place,
        );
        this.node.append(this.thought);
      } else {
        this.said = this.growing;
        this.node.append(place);
      }
    }
    this.growing.add(delta);
  }

  /** Nothing more comes to what grew; reasoning is folded away. */
  #settle() {
    this.growing?.draw();
    if (this.kind === "reasoning") this.thought.open = false;
    this.growing = undefined;
    this.kind = "";
  }

  call({ call_id: id, name, arguments: given }) {
    this.#settle();
    this.said = undefined;
    const call = this.calls.get(id);
    if (call && !call.done) call.name(name, given);
    else this.node.append(this.#add(id, name, given).node);
  }

  result({ call_id: id, name, content, is_error: failed }) {
    this.#settle();
    let call = this.calls.get(id);
    if (!call) this.node.append((call = this.#add(id, name, {})).node);
    call.result(content, failed);
  }

  #add(id, name, given) {
    const call = new ToolCall(name, given);
    this.calls.set(id, call);
    return call;
  }

  part(part) {
    this.#settle();
    if (part.type === "text")
      this.node.append(element("div", { className: "prose" }, ...markdown(part.text)));
    else this.node.append(media(part, this.speaks));
  }

  /** A line about the answer, such as why there is none. */
  note(text, kind = "") {
    this.#settle();
    this.node.append(element("p", { className: `note ${kind}`, textContent: text }));
  }

  end({ outcome, text, reason }) {
    // Pieces may have been missed, or a plugin may have changed the answer after it was streamed.
    if (text && !this.said) this.text(text);
    this.#settle();
    if (text && this.said.text.trim() !== text.trim())
      this.said.place.replaceChildren(...markdown(text));
    for (const call of this.calls.values()) call.stop();
    announce(this.outcome(outcome, reason) || text || "The answer is complete.");
  }

  /** Say how it came out, unless it was simply answered. */
  outcome(outcome, reason) {
    const note =
      NOTES[outcome]?.(reason) ?? (reason && outcome === "answered" ? `Ended early: ${reason}.` : "");
    if (note) this.note(note, outcome === "cancelled" ? "" : "problem");
    return note;
  }
}

const NOTES = {
  cancelled: (reason) =>
    reason === "parked" ? "The gateway goes down; it continues at the next start." : "Stopped.",
  failed: (reason) => reason || "The turn failed.",
  blocked: (reason) => `Blocked: ${reason || "a rule does not allow it"}`,
  rejected: (reason) => `Not accepted: ${reason || "no reason was given"}`,
  dropped: (reason) => `Dropped: ${reason || "no reason was given"}`,
  steered: () => "Taken into the running answer.",
};

/** One call of a tool, folded; what it holds is made when somebody looks. */
class ToolCall {
  constructor(name, given) {
    this.mark = element("span", { className: "mark" });
    this.title = element("strong");
    this.gist = element("span", { className: "gist" });
    this.body = element("div", { className: "tool-body" });
    this.node = element(
      "details",
      { className: "tool" },
      element("summary", {}, this.mark, this.title, this.gist),
      this.body,
    );
    this.node.addEventListener("toggle", () => this.#fill());
    this.done = false;
    this.#state("running");
    this.name(name, given);
  }

  name(name, given) {
    this.given = parsed(given);
    this.title.textContent = visible(name ?? "tool");
    this.gist.textContent = visible(gist(this.given));
    this.#fill();
  }

  result(content, failed) {
    this.content = String(content ?? "");
    this.done = true;
    this.#state(failed ? "failed" : "done");
    this.#fill();
  }

  /** The answer has ended; what is not done will not be. */
  stop() {
    if (this.done) return;
    this.done = true;
    this.#state("stopped");
  }

  #state(state) {
    this.node.dataset.state = state;
    this.mark.textContent = { running: "", done: "✓", failed: "✗", stopped: "–" }[state];
    this.mark.setAttribute("role", "img");
    this.mark.setAttribute("aria-label", state);
  }

  #fill() {
    if (!this.node.open) return;
    this.body.replaceChildren(
      element("h3", { textContent: "Arguments" }),
      code(visible(pretty(this.given)), "json"),
    );
    if (this.content !== undefined)
      this.body.append(element("h3", { textContent: "Result" }), shown(this.content));
  }
}

/** A result: a diff in colour, anything else as it is; a long one is cut until asked for. */
function shown(content, all = false) {
  const cut = !all && content.length > LONG;
  const text = cut ? content.slice(0, LONG) : content;
  const box = element("div", {}, isDiff(text) ? diff(text) : code(text || "(nothing)"));
  if (cut) {
    const more = element("button", {
      type: "button",
      textContent: `Show all ${content.length.toLocaleString()} characters`,
    });
    more.addEventListener("click", () => box.replaceWith(shown(content, true)));
    box.append(more);
  }
  return box;
}

/** Arguments as a model wrote them may be text that is JSON, or not. */
export function parsed(given) {
  if (typeof given !== "string") return given ?? {};
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

export const pretty = (value) =>
  typeof value === "string" ? value : JSON.stringify(value, undefined, 2);

function gist(given) {
  const values = typeof given === "object" ? Object.values(given) : [given];
  const said = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return said.join(" ").replace(/\s+/g, " ").slice(0, 120);
}

/** A sound or a picture. A picture at some address is not loaded: that would tell its owner. */
export function media(part, plays = false) {
  if (!part.data)
    return element("p", {
      className: "note",
      textContent: `[${part.type}: ${part.url ?? part.mime_type ?? "not kept"}]`,
    });
  const bytes = Uint8Array.from(atob(part.data), (char) => char.charCodeAt(0));
  const kind = part.type === "image" ? /^image\/(png|jpeg|gif|webp)$/ : /^(audio|video)\//;
  if (!kind.test(part.mime_type ?? ""))
    return element("p", { className: "note", textContent: `[${part.type}: ${part.mime_type}]` });
  const address = URL.createObjectURL(new Blob([bytes], { type: part.mime_type }));
  if (part.type === "image") {
    const picture = element("img", { src: address, alt: "Picture in the answer" });
    picture.addEventListener("load", () => URL.revokeObjectURL(address));
    return picture;
  }
  const player = element("audio", {
    src: address,
    controls: true,
    preload: "auto",
    "aria-label": "Recording",
  });
  // A browser may want a click first; the player is there for it.
  if (plays) player.play().catch(() => {});
  return player;
}
