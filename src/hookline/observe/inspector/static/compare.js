// A replay beside its original: two aligned lists of steps, with what differs marked.
import { order } from "./api.js";
import { badge, code, diff, element, section, span } from "./elements.js";
import { sessionAddress } from "./sessions.js";

export async function compareScreen({ place, rest, signal, failed }) {
  const [id] = rest;
  const run = element("button", { type: "button", className: "primary", textContent: "Run the replay" });
  const only = element("input", { type: "checkbox", id: "only-different" });
  const result = element("div", { className: "column wide", "aria-live": "polite" });
  place.append(
    element(
      "div",
      { className: "tools" },
      element("div", { className: "grow" }, element("h2", { textContent: "Replay and original" }), element("a", { href: sessionAddress(id), textContent: id })),
      element("label", { className: "check", htmlFor: "only-different" }, only, "Differences only"),
      run,
    ),
    element("p", { className: "dim", textContent: "The session is played once more through the plugins of today, with the recorded answers of models and tools. Nothing is called, sent or written." }),
    result,
  );
  let found;
  const show = () => result.replaceChildren(...(found ? compared(found, id, only.checked) : []));
  only.addEventListener("change", show);
  run.addEventListener("click", async () => {
    run.disabled = true;
    run.textContent = "Replaying…";
    try {
      found = await order("replay", { session: id });
      if (!signal.aborted) show();
    } catch (problem) {
      failed(problem);
    } finally {
      run.disabled = false;
      run.textContent = "Run it again";
    }
  });
}

function compared({ same, diverged, stopped, notes, different, random, steps }, id, onlyDifferent) {
  const counted = [`${different} of ${steps.length} steps differ`];
  if (random) counted.push(`${random} are not deterministic`);
  const said = same ? "Everything came out as it was." : `${counted.join("; ")}.`;
  const parts = [element("p", { className: `verdict ${same ? "ok" : "bad"}`, id: "compared", textContent: said })];
  for (const text of [diverged, stopped]) if (text) parts.push(span("reason", text));
  if (notes.length) parts.push(section("Notes", element("ul", {}, ...notes.map((text) => element("li", {}, span("", text))))));
  const shown = onlyDifferent ? steps.filter(({ state }) => state !== "same") : steps;
  parts.push(
    element("div", { className: "pair heads", "aria-hidden": "true" }, element("strong", { textContent: "Original" }), element("strong", { textContent: "Replay" })),
    element("ol", { className: "steps" }, ...shown.map((step) => stepRow(step, id))),
  );
  return parts;
}

function stepRow(step, id) {
  const { kind, title, state, differences, original, replayed, entry, turn } = step;
  const head = element(
    "div",
    { className: "tools" },
    span("kind", kind, { "data-kind": kind === "call" ? "tool_call" : kind === "answer" ? "assistant" : "user" }),
    element("a", { href: sessionAddress(id, "entry", entry), textContent: `${title}` }),
    span("dim grow", `turn ${turn + 1}`),
    ...(state === "same" ? [] : [badge(state), span("reason", differences.join(", "))]),
  );
  const made = element("li", { className: "card", "data-state": state }, head);
  if (state === "same") made.append(span("dim one-line", gist(original)));
  else {
    made.append(
      element("div", { className: "pair" }, side(original, "Original"), side(replayed, "Replay")),
      ...(step.diff ? [diff(step.diff)] : []),
    );
  }
  return made;
}

/** One of the two; where they stand below each other, each says which it is. */
function side(value, label) {
  if (!value) return element("p", { className: "dim", textContent: `${label}: it is not there.` });
  const { decision, by, reason } = value;
  const said = decision && element("p", {}, badge(decision), " ", span("by", by ?? ""), " ", span("reason", reason ?? ""));
  return element("div", { "data-label": label }, ...(said ? [said] : []), ...(decision ? [] : [code(value.text ?? value, label)]));
}

function gist(value) {
  const said = value?.text ?? value?.message ?? value?.result ?? value;
  return (typeof said === "string" ? said : JSON.stringify(said ?? "")).slice(0, 300);
}
