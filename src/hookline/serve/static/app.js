// The page: what a person does becomes frames for the gateway, and its frames become what is shown.
import { Approvals } from "./approvals.js";
import { Composer } from "./composer.js";
import { Connection, request, token, Unauthorised } from "./connection.js";
import { Conversation } from "./conversation.js";
import { announce, byId, element, visible } from "./elements.js";
import { first, fragment, Sessions } from "./sessions.js";

const HISTORY = 1000;

class Page {
  constructor() {
    this.sent = new Map(); // messages whose answer has not ended, by id
    this.running = new Set(); // ids of answers that are being given
    this.early = undefined; // frames that came before the history was there
    this.loads = 0;
    this.number = 0;
    this.conversation = new Conversation();
    this.connection = new Connection({
      frame: (frame) => (this.early ? this.early.push(frame) : this.take(frame)),
      up: () => this.up(),
      down: (seconds) => this.down(seconds),
      unauthorised: (problem) => this.askForToken(problem),
      refused: (why) => this.refused(why),
      tooLarge: () => this.tooLarge(),
    });
    this.approvals = new Approvals(byId("approvals"), (...answer) => this.answerApproval(...answer));
    this.sessions = new Sessions((session) => this.open(session));
    this.composer = new Composer({
      say: (text, parts) => this.say(text, parts),
      cancel: () => this.connection.send({ type: "cancel" }),
      failed: (message) => this.problem(message),
    });
    byId("banner-button").addEventListener("click", () => this.connection.retry());
    byId("token-form").addEventListener("submit", (event) => this.takeToken(event));
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address keeps its session
      byId("composer-text").focus();
    });
    this.open(first());
  }

  // --- the connection ------------------------------------------------------------------------

  open(session) {
    this.sessions.choose(session);
    this.sent.clear();
    this.#idle();
    this.conversation.clear();
    this.early = [];
    this.state("connecting", "Connecting…");
    this.connection.open(session);
  }

  async up() {
    this.state("connected", "Connected");
    byId("banner").hidden = true;
    byId("token-form").hidden = true;
    byId("composer").hidden = false;
    this.approvals.clear(); // the gateway shows again what still waits
    this.early = [];
    this.sessions.refresh().catch(() => {}); // the conversation matters more than the list
    await this.load();
  }

  down(seconds) {
    this.state("lost", "Not connected");
    this.loads += 1; // a history that still comes is not that of the next connection
    for (const message of this.sent.values())
      if (!message.accepted) message.node.dataset.state = "waiting";
    this.#idle();
    this.banner(`The connection to the gateway is lost. Trying again in ${seconds} s.`, true);
  }

  refused(why) {
    this.loads += 1;
    this.state("lost", "Not connected");
    this.problem(`This session cannot be opened: ${why}.`);
  }

  /** The gateway hangs up on a message that is too large; sent again, it would be again. */
  tooLarge() {
    for (const [id, message] of this.sent) {
      if (!message.tried || message.accepted) continue;
      this.sent.delete(id);
      this.unsent = "The last message was not sent: it is larger than the gateway takes.";
    }
  }

  /** Show what was said before, then what came in the meantime. */
  async load() {
    const turn = (this.loads += 1);
    let found;
    let failure = "";
    try {
      found = await request(
        `/api/sessions/${encodeURIComponent(this.sessions.current)}?limit=${HISTORY}`,
      );
    } catch (problem) {
      if (turn !== this.loads) return;
      found = { messages: [], live: [], busy: false, n: -1 };
      if (problem instanceof Unauthorised) this.askForToken(problem);
      else if (problem.status !== 404) failure = `The history cannot be shown: ${problem.message}`;
    }
    if (turn !== this.loads) return;
    this.conversation.history(found.messages, found.busy);
    if (found.busy && !found.live.length) this.running.add(""); // a turn of another channel
    const early = this.early ?? [];
    this.early = undefined;
    for (const frame of found.live) this.take(frame);
    this.#resend(found);
    for (const frame of early) if (!(frame.n <= found.n)) this.take(frame); // the others are in `live`
    for (const text of [failure, this.unsent]) if (text) this.problem(text);
    this.unsent = undefined;
    this.#busy();
  }

  /** Send what the gateway did not get; ask where that is not certain. */
  #resend(found) {
    const arrived = new Set(found.live.map((frame) => frame.id));
    const recent = new Set(
      found.messages
        .slice(-20)
        .filter((entry) => entry.role === "user")
        .map((entry) => entry.text),
    );
    for (const [id, message] of [...this.sent]) {
      const { frame } = message;
      if (arrived.has(id) || (message.tried && recent.has(frame.text))) {
        this.sent.delete(id);
        continue;
      }
      message.node = this.conversation.said(id, frame.text, frame.parts);
      if (message.accepted) {
        this.sent.delete(id); // its turn has not begun
        continue;
      }
      if (!message.tried) this.#send(message);
      else {
        const again = element("button", { type: "button", textContent: "Send again" });
        const note = element(
          "p",
          { className: "note problem" },
          "It is not certain that this arrived. ",
          again,
        );
        again.addEventListener("click", () => {
          note.remove();
          this.#send(message);
        });
        message.node.append(note);
      }
    }
  }

  // --- out -----------------------------------------------------------------------------------

  say(text, parts = []) {
    const id = `m${Date.now().toString(36)}${(this.number += 1)}`;
    const frame = parts.length ? { type: "message", id, text, parts } : { type: "message", id, text };
    const message = { frame, node: this.conversation.said(id, text, parts), tried: false, accepted: false };
    this.sent.set(id, message);
    this.conversation.toEnd();
    message.node.dataset.state = "waiting";
    if (!this.early) this.#send(message);
  }

  #send(message) {
    if (!this.connection.send(message.frame)) return;
    message.tried = true;
    this.running.add(message.frame.id);
    this.#busy();
  }

  answerApproval(id, answer, hash) {
    const sent = this.connection.send({ type: "answer", id, answer, hash });
    if (!sent) this.problem("The answer could not be sent: there is no connection.");
    return sent;
  }

  // --- in ------------------------------------------------------------------------------------

  take(frame) {
    if (LATE.has(frame.type) && frame.type !== "end" && frame.id) this.running.add(frame.id);
    TAKERS[frame.type]?.(this, frame);
    this.#busy();
  }

  ended(id) {
    this.running.delete(id);
    this.running.delete("");
    this.sent.delete(id);
    if (!this.running.size) this.approvals.clear();
    this.sessions.refresh().catch(() => {}); // the list catches up with the next answer
  }

  answer(id) {
    const known = this.conversation.answers.get(id);
    if (known) return known;
    if (!this.sessions.isListed) this.sessions.refresh().catch(() => {}); // the end asks again
    const answer = this.conversation.begin(id);
    answer.speaks = !!this.sent.get(id)?.frame.parts?.some((part) => part.type === "audio");
    return answer;
  }

  #idle() {
    this.running.clear();
    this.approvals.clear();
    this.#busy();
  }

  #busy() {
    const busy = this.running.size > 0;
    const waits = byId("approvals").childElementCount > 0;
    const title = waits ? "● Hookline waits for you" : "Hookline";
    // This is asked with every piece of an answer; the page is touched only where something changed.
    if (byId("cancel").hidden === busy) this.composer.busy(busy);
    if (document.title !== title) document.title = title;
  }

  // --- what is said about it ------------------------------------------------------------------

  state(name, text) {
    Object.assign(byId("state"), { textContent: text }).dataset.state = name;
  }

  banner(text, retries = false) {
    byId("banner-text").textContent = text;
    byId("banner-button").hidden = !retries;
    byId("banner").hidden = false;
  }

  problem(text) {
    this.conversation.note(text, "problem");
    this.conversation.toEnd();
    announce(text);
  }

  /** Without a token, say where one is; with a wrong one, say that it is wrong, too. */
  askForToken({ message }) {
    this.state("lost", "Not connected");
    byId("banner").hidden = true;
    byId("token-problem").textContent = token.get() ? visible(message) : "";
    byId("token-problem").hidden = !token.get();
    byId("token-form").hidden = false;
    byId("composer").hidden = true;
    byId("token").focus();
  }

  takeToken(event) {
    event.preventDefault();
    token.set(tokenIn(byId("token").value.trim()));
    byId("token").value = "";
    byId("token-form").hidden = true;
    this.open(this.sessions.current);
  }
}

/** Frames of an answer: of one that is over, the history has them. */
const LATE = new Set(["text", "reasoning", "tool_call", "tool_result", "end"]);

const TAKERS = {
  message: (page, { id, text, parts }) => {
    if (!page.sent.has(id)) page.conversation.said(id, text, parts);
    page.running.add(id);
  },
  session: (page, frame) => (byId("model").textContent = frame.model ?? ""),
  accepted: (page, { id }) => {
    const message = page.sent.get(id);
    if (!message) return;
    message.accepted = true;
    delete message.node.dataset.state;
  },
  text: (page, frame) => page.answer(frame.id).text(frame.delta),
  reasoning: (page, frame) => page.answer(frame.id).reasoning(frame.delta),
  tool_call: (page, frame) => page.answer(frame.id).call(frame),
  tool_result: (page, frame) => page.answer(frame.id).result(frame),
  part: (page, frame) => page.answer(frame.id).part(frame.part),
  approval: (page, frame) => page.approvals.show(frame),
  question: (page, frame) => page.approvals.show(frame),
  answered: (page, { id }) => page.approvals.done(id),
  note: (page, { text }) => page.conversation.note(text),
  error: (page, { id, message }) => {
    if (!page.sent.has(id) && !page.running.has(id)) {
      page.problem(message);
      return;
    }
    delete page.sent.get(id)?.node.dataset.state;
    page.answer(id).note(message, "problem");
    announce(message);
    page.ended(id);
  },
  end: (page, frame) => {
    page.answer(frame.id).end(frame);
    page.ended(frame.id);
  },
};

/** What was pasted may be the whole link. */
const tokenIn = (text) => new URLSearchParams(text.split("#")[1] ?? "").get("token") ?? text;

const given = fragment();
if (given.token) {
  token.set(given.token);
  history.replaceState(
    null,
    "",
    given.session ? `#session=${encodeURIComponent(given.session)}` : location.pathname,
  );
}
new Page();
