// The live tail: what the hooks of this process do, and what is written on any tape.
import { listen } from "./api.js";
import { badge, did, element, facts, section, span, clock, took } from "./elements.js";
import { VirtualList, held } from "./list.js";
import { payloadPart } from "./detail.js";
import { sessionAddress } from "./sessions.js";

const MOST = 5000; // frames that are kept
const DECISIONS = { "": "Any decision", deny: "deny", ask: "ask", rewrote: "rewrote", error: "error", allow: "allow" };

export async function liveScreen({ place, query, signal, failed }) {
  const fields = { hook: "Hook", plugin: "Plugin", session: "Session" };
  const inputs = Object.entries(fields).map(([name, label]) =>
    element("input", { type: "search", name, placeholder: label, "aria-label": label, value: query.get(name) ?? "" }),
  );
  const decision = element("select", { name: "decision", "aria-label": "Decision" });
  for (const [value, text] of Object.entries(DECISIONS)) decision.append(element("option", { value, textContent: text }));
  decision.value = query.get("decision") ?? "";
  const state = element("span", { className: "badge", id: "tail-state", role: "status", textContent: "connecting" });
  const pause = element("button", { type: "button", textContent: "Pause", "aria-pressed": "false" });
  const clear = element("button", { type: "button", textContent: "Clear" });
  const form = element("form", { className: "tools filters", role: "search" }, element("h2", { textContent: "Live" }), ...inputs, decision, pause, clear, state);
  form.addEventListener("submit", (event) => event.preventDefault());

  let frames = [];
  let chosen;
  const detail = element("div", { className: "right detail" });
  const list = new VirtualList({
    label: "What happens", height: 40, fetch: held(() => frames), render: row,
    isChosen: (frame) => frame === chosen,
    nothing: "Nothing happened yet.",
    choose: (frame) => {
      chosen = frame;
      detail.replaceChildren(frameDetail(frame));
      halves.classList.add("opened");
    },
  });
  const halves = element("div", { className: "halves" }, element("div", { className: "left wide" }, list.frame), detail);
  place.append(form, halves);
  detail.append(
    element("p", { className: "empty", textContent: "What happens from now on appears here: what is written in any session, and the hooks of the process that serves this page." }),
  );
  list.refresh();

  let waiting = false;
  const paused = () => pause.getAttribute("aria-pressed") === "true";
  const draw = () => {
    if (waiting || paused()) return;
    waiting = true;
    requestAnimationFrame(async () => {
      waiting = false;
      const follow = list.isAtEnd;
      await list.refresh();
      if (follow) list.element.scrollTop = list.element.scrollHeight;
    });
  };
  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(!paused()));
    pause.textContent = paused() ? "Go on" : "Pause";
    draw();
  });
  clear.addEventListener("click", () => {
    frames = [];
    list.refresh();
  });

  let connection;
  const connect = () => {
    connection?.abort();
    connection = new AbortController();
    const wanted = Object.fromEntries([...inputs, decision].map(({ name, value }) => [name, value.trim()]));
    const given = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    history.replaceState(null, "", `#/live${given.size ? `?${given}` : ""}`);
    listen(wanted, AbortSignal.any([signal, connection.signal]), {
      state: (text) => {
        state.textContent = text;
        state.className = `badge ${text === "watching" ? "live" : "bad"}`;
      },
      frame: (frame) => {
        if (frame.type === "watching") return;
        frames.push(frame);
        if (frames.length > MOST) frames = frames.slice(-MOST / 2);
        draw();
      },
    }).catch(failed);
  };
  let typing;
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(connect, 250);
  });
  signal.addEventListener("abort", () => connection.abort());
  connect();
}

function row(frame) {
  if (frame.type === "dropped") return [span("dim", `${frame.count} were dropped: this page is too slow`)];
  const what = frame.type === "entry" ? frame.kind : frame.hook;
  const by = frame.type === "entry" ? frame.preview : (frame.calls ?? []).map((call) => call.by).join(", ");
  return [
    span("dim clock", clock(frame.time)),
    span("name hook", what, { "data-kind": frame.type }),
    span("grow dim", frame.reason || frame.error || by),
    ...(frame.decision && frame.decision !== "allow" ? [badge(frame.decision)] : []),
    ...(frame.type === "dispatch" ? [span("cost", took(frame.duration))] : []),
  ];
}

function frameDetail(frame) {
  const calls = (frame.calls ?? []).map((call) =>
    element(
      "li",
      {},
      element("div", {}, badge(did(call.did)), " ", span("by", call.by), " ", span("dim", took(call.duration))),
      ...[call.fields.length && span("dim", `changed ${call.fields.join(", ")}`), call.reason && span("reason", call.reason), call.error && span("reason", call.error), call.place && span("place", call.place)].filter(Boolean),
    ),
  );
  const rest = frame.entry_id ? ["entry", frame.entry_id] : [];
  const link = frame.session ? element("a", { href: sessionAddress(frame.session, ...rest), textContent: frame.session }) : undefined;
  const parts = [
    element("div", { className: "tools" }, element("h2", { textContent: frame.hook ?? frame.kind ?? "" }), ...(frame.decision ? [badge(frame.decision)] : [])),
    facts({ session: link, time: clock(frame.time), took: took(frame.duration), reason: frame.reason, error: frame.error, call: frame.call_id }),
    calls.length ? section("Handlers, in the order in which they ran", element("ol", { className: "rulings" }, ...calls)) : undefined,
  ];
  const payload = payloadPart("Payload", frame.payload);
  payload.open = true;
  return element("article", {}, ...parts.filter(Boolean), payload);
}
