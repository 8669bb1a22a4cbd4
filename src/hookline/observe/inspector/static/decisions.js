// What was decided on tool calls, what waits for a person, and the audit log where there is one.
import { listen, order, request } from "./api.js";
import { badge, code, diff, element, empty, moment, section, span } from "./elements.js";
import { payloadPart } from "./detail.js";
import { sessionAddress } from "./sessions.js";
import { soon } from "./soon.js";

const CHOICES = { "": "All", deny: "Denied", ask: "Asked", rewrote: "Rewritten", allow: "Allowed" };

export async function decisionsScreen({ place, query, signal, failed }) {
  const session = element("input", { type: "search", placeholder: "Session, whole name", "aria-label": "Session", value: query.get("session") ?? "" });
  const choice = element("select", { "aria-label": "Decision" });
  for (const [value, text] of Object.entries(CHOICES)) choice.append(element("option", { value, textContent: text }));
  choice.value = query.get("decision") ?? "";
  const column = element("div", { className: "column" });
  place.append(element("div", { className: "tools filters" }, element("h2", { textContent: "Decisions" }), session, choice), column);

  const refresh = async () => {
    const wanted = { session: session.value.trim(), decision: choice.value };
    const given = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    history.replaceState(null, "", `#/decisions${given.size ? `?${given}` : ""}`);
    const found = await request("decisions", { ...wanted, limit: 200 });
    const parts = [];
    if (found.pending.length) parts.push(section("Waiting for a person", ...found.pending.map((each) => question(each, failed))));
    if (found.let_through.length) parts.push(letThrough(found.let_through));
    parts.push(
      found.decisions.length
        ? section("Tool calls, the newest first", element("ol", { className: "made" }, ...found.decisions.map(decision)))
        : empty("Nothing was decided here yet."),
    );
    if (found.audit) parts.push(audit(found.audit));
    column.replaceChildren(...parts);
  };
  session.addEventListener("change", () => refresh().catch(failed));
  choice.addEventListener("change", () => refresh().catch(failed));
  await refresh();
  // Also when watching begins: what happened since the first look is not told again.
  listen({ dispatches: "false" }, signal, { frame: soon(refresh, failed) }).catch(failed);
}

function decision({ tool, asked, session, entry_id: entry, time, decision: made, rulings, said }) {
  const link = element("a", { href: sessionAddress(session, "entry", entry) }, span("by", tool));
  const who = rulings.map(({ by, decision: what, reason, changed }) => {
    const text = [`${what} by ${by}`, changed?.length && `rewrote ${changed.join(", ")}`, reason].filter(Boolean).join(": ");
    return element("li", {}, span("", text));
  });
  return element(
    "li",
    { className: "card", "data-decision": made },
    element("div", { className: "tools" }, badge(made), link, ...(asked ? [span("", asked)] : []), span("dim grow", session), moment(time)),
    ...(said && !rulings.some(({ reason }) => reason === said) ? [span("reason", said)] : []),
    ...(who.length ? [element("ul", { className: "who" }, ...who)] : []),
  );
}

/** Handlers that failed at a gate, which then let something through. */
function letThrough(failures) {
  const rows = failures.map(({ hook, by, place, error, session, time }) =>
    element(
      "li",
      { className: "card", "data-decision": "failed" },
      element("div", { className: "tools" }, badge("failed"), span("by", by), span("", `at ${hook}`), element("a", { className: "grow", href: sessionAddress(session), textContent: session }), moment(time)),
      span("reason", error),
      span("place", place),
    ),
  );
  const advice = element("p", { className: "dim", textContent: "A guard, or every handler with hooks.on_gate_error = \"deny\", denies if it fails." });
  return section("Failed at a gate and let it through, in the last week", advice, element("ol", { className: "made" }, ...rows));
}

function question({ id, hash, tool, session, question: text, arguments: given, diff: changes, asked, choices, whole }, failed) {
  const buttons = choices.map(({ answer, label }) => {
    const button = element("button", { type: "button", className: "answer", "data-answer": answer, textContent: label });
    button.addEventListener("click", async () => {
      for (const each of buttons) each.disabled = true;
      try {
        await order(`approvals/${encodeURIComponent(id)}`, { answer, hash });
        button.parentElement.replaceChildren(span("dim", `Answered: ${label}`));
      } catch (problem) {
        for (const each of buttons) each.disabled = false;
        failed(problem);
      }
    });
    return button;
  });
  const note = whole ? [] : [element("p", { className: "dim", textContent: "This call is too long to be shown whole here. Approve it in the chat or on the web page, which show all of it." })];
  return element(
    "section",
    { className: "card waiting" },
    element("div", { className: "tools" }, badge("ask"), span("by", tool), span("dim grow", session), moment(asked)),
    span("reason", text),
    ...(changes ? [diff(changes), payloadPart("All arguments", given)] : [code(given, "Arguments")]),
    ...note,
    element("div", { className: "tools answers" }, ...buttons),
  );
}

function audit(records) {
  const rows = records.map((record) =>
    element(
      "tr",
      {},
      element("td", {}, moment(record.time)),
      element("td", {}, badge(record.outcome ?? record.kind)),
      element("td", { textContent: record.tool ?? record.hook ?? "" }),
      element("td", { textContent: record.session_id ?? "" }),
      element("td", { textContent: (record.rulings ?? []).map(({ by, decision: made }) => `${made} by ${by}`).join("; ") }),
    ),
  );
  const heads = ["Time", "Outcome", "What", "Session", "Who"].map((text) => element("th", { scope: "col", textContent: text }));
  return section(
    "Audit log, the newest first",
    element("div", { className: "table", tabIndex: 0, role: "region", "aria-label": "Audit log" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows))),
  );
}
