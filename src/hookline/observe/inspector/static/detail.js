// One entry or one dispatch with all that explains it.
import { badge, code, counted, did, diff, element, facts, moment, section, span, took } from "./elements.js";

/** An entry: what it says, what was changed, who decided. */
export function entryDetail(entry) {
  const { kind, call, decision, rulings } = entry;
  const parts = [head(call ? call.tool : kind, decision)];
  parts.push(facts({ kind, entry: entry.id, time: moment(entry.time), call: call?.id, "on behalf of": call?.behalf }));
  if (call) parts.push(...callParts(call, decision, rulings));
  else parts.push(...saidParts(entry));
  parts.push(element("div", { className: "seen" }));
  parts.push(folded("The entry as it is on the tape", { payload: entry.payload, meta: entry.meta }));
  return element("article", {}, ...parts.filter(Boolean));
}

/** Add to an entry who saw it, once that was read from the trace. */
export function showSeen(detail, dispatches = []) {
  const place = detail.querySelector(".seen");
  if (dispatches.length) place?.replaceChildren(section("Who saw it", ...dispatches.map(dispatchPart)));
}

/** A dispatch: who ran, what each did and changed, where it is written. */
export function dispatchDetail(record) {
  return element(
    "article",
    {},
    head(record.name, record.decision),
    facts({
      kind: "hook", time: moment(record.time), took: took(record.duration), reason: record.reason,
      error: record.error, call: record.call,
    }),
    section("Handlers, in the order in which they ran", ...handlers(record)),
    record.payload === undefined ? undefined : section("Payload", code(record.payload, "Payload")),
  );
}

const head = (title, state) =>
  element("div", { className: "tools" }, element("h2", { textContent: title }), ...(state ? [badge(state)] : []));

function callParts(call, decision, rulings = []) {
  const denied = call.ran === false;
  const parts = [];
  if (denied) parts.push(element("p", { className: "verdict bad", textContent: "It did not run. The model was told:" }), code(call.result, "What the model was told"));
  if (rulings.length) parts.push(section("Who decided", element("ol", { className: "rulings" }, ...rulings.map(ruling))));
  if (call.diff) parts.push(section("What was changed before it ran", diff(call.diff)));
  if (call.arguments) parts.push(section("Arguments, as they ran", code(call.arguments, "Arguments")));
  else if (call.requested) parts.push(section("Arguments, as the model wrote them", code(parsed(call.requested), "Arguments")));
  if (!denied && call.result !== null) parts.push(section(call.is_error ? "Result: an error" : "Result", code(text(call.result), "Result")));
  return parts;
}

function ruling({ by, decision, reason, changed, place }) {
  const line = element("div", {}, badge(decision), " ", span("by", by));
  if (changed?.length) line.append(span("dim", ` rewrote ${changed.join(", ")}`));
  const more = [reason && span("reason", reason), place && span("place", place)].filter(Boolean);
  return element("li", {}, line, ...more);
}

function saidParts({ payload }) {
  const message = payload.message;
  if (typeof message !== "object" || !message) return payload.error ? [section("Error", code(payload.error, "Error"))] : [];
  const parts = [];
  if (message.reasoning) parts.push(section("Reasoning", code(message.reasoning, "Reasoning")));
  const said = text(message.content);
  if (said) parts.push(section(message.role === "user" ? "What was said" : "What the model said", code(said, "Text")));
  for (const call of message.tool_calls ?? []) {
    const called = call.function ?? call;
    parts.push(section(`Asks for ${called.name ?? ""}`, code(parsed(called.arguments), "Arguments")));
  }
  return parts;
}

function dispatchPart(record) {
  const title = element("summary", {}, span("by", record.name), " ");
  if (record.decision && record.decision !== "allow") title.append(badge(record.decision), " ");
  title.append(span("dim", `${counted(record.handlers?.length ?? 0, "handler", "handlers")} · ${took(record.duration)}`));
  const made = element("details", {}, title, ...handlers(record));
  made.open = Boolean(record.decision && record.decision !== "allow");
  return made;
}

function handlers({ handlers: found = [] }) {
  if (!found.length) return [element("p", { className: "dim", textContent: "Nobody is attached." })];
  const rows = found.map((each) => {
    const line = element("div", {}, badge(did(each.did)), " ", span("by", each.by), " ", span("dim", took(each.duration)));
    const more = [each.reason && span("reason", each.reason), each.error && span("reason", each.error), each.place && span("place", each.place)];
    const diffs = Object.entries(each.diffs ?? {}).flatMap(([name, lines]) => [span("dim", `changed ${name}`), diff(lines, `Changes of ${name}`)]);
    return element("li", {}, line, ...more.filter(Boolean), ...diffs);
  });
  return [element("ol", { className: "rulings" }, ...rows)];
}

function folded(title, value) {
  return element("details", {}, element("summary", { textContent: title }), code(value, title));
}

/** A payload in a part that can be folded away. */
export const payloadPart = folded;

function parsed(given) {
  if (typeof given !== "string") return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function text(content) {
  if (!Array.isArray(content)) return content ?? "";
  return content.map((part) => part.text ?? `[${part.type}]`).join("\n");
}
