// The catalogue: every hook, what becomes of its results, and who is attached in run order.
import { quiet, request } from "./api.js";
import { badge, code, counted, did, element, facts, moment, section, span, took } from "./elements.js";
import { sessionAddress } from "./sessions.js";

export async function hooksScreen({ place, rest, signal, failed }) {
  const all = await request("hooks");
  const filter = element("input", { type: "search", placeholder: "Find a hook or a plugin", "aria-label": "Find a hook or a plugin" });
  const only = element("input", { type: "checkbox", id: "only-attached" });
  const list = element("nav", { className: "catalogue left", "aria-label": "Hooks", tabIndex: 0 });
  const detail = element("div", { className: "right detail" });
  const halves = element("div", { className: "halves" }, list, detail);
  place.append(
    element(
      "div",
      { className: "tools" },
      element("h2", { textContent: `Hooks (${all.length})` }),
      filter,
      element("label", { htmlFor: "only-attached", className: "check" }, only, "Attached only"),
    ),
    halves,
  );

  const fill = () => {
    const text = filter.value.trim().toLowerCase();
    const shown = all.filter(
      ({ name, attached }) =>
        (!only.checked || attached.length) &&
        (!text || name.includes(text) || attached.some((each) => each.name.toLowerCase().includes(text))),
    );
    const parts = [];
    let family;
    for (const hook of shown) {
      if (hook.family !== family) parts.push(element("h3", { textContent: hook.family_title }));
      family = hook.family;
      const link = element("a", { href: `#/hooks/${encodeURIComponent(hook.name)}` }, span("grow name", hook.name));
      if (hook.attached.length) link.append(element("span", { className: "count", textContent: hook.attached.length, title: "attached" }));
      if (hook.name === current) link.setAttribute("aria-current", "page");
      parts.push(link);
    }
    list.replaceChildren(...(parts.length ? parts : [element("p", { className: "empty", textContent: "No hook and no plugin is called that." })]));
  };

  let current;
  const go = ([name]) => {
    current = name;
    const hook = all.find((each) => each.name === name);
    halves.classList.toggle("opened", Boolean(hook));
    detail.replaceChildren(hook ? described(hook) : element("p", { className: "empty", textContent: "Choose a hook to see who is attached to it." }));
    fill();
    if (hook) showFired(hook, detail, () => !signal.aborted && current === name).catch(failed);
  };
  filter.addEventListener("input", fill);
  only.addEventListener("change", fill);
  go(rest);
  return go;
}

function described(hook) {
  const attached = hook.attached.map((each) =>
    element(
      "li",
      {},
      element("div", {}, span("by", each.name), " ", ...each.marks.map((mark) => span("badge", mark)), ...(each.scope ? [span("dim", ` in ${each.scope}`)] : [])),
      span("place", each.place),
      ...(each.timeout ? [span("dim", `time limit ${each.timeout} s`)] : []),
      ...(each.left_behind ? [span("reason", `${each.left_behind} calls were left behind at their time limit`)] : []),
    ),
  );
  return element(
    "article",
    {},
    element("a", { className: "back", href: "#/hooks", textContent: "← All hooks" }),
    element("div", { className: "tools" }, element("h2", { textContent: hook.name }), badge(hook.family)),
    element("p", { textContent: hook.doc }),
    code(hook.signature, "Signature"),
    facts({
      fires: hook.fires, reduce: hook.reduce, order: hook.order, errors: hook.errors, mode: hook.mode,
      "time limit": hook.timeout, scope: hook.scope, match: hook.match,
      "seen firing": hook.calls ? counted(hook.calls, "time", "times") : undefined,
      last: hook.last ? moment(hook.last) : undefined,
    }),
    element("div", { className: "fired" }),
    section(
      "Attached, in run order",
      attached.length ? element("ol", { className: "rulings" }, ...attached) : element("p", { className: "dim", textContent: "Nobody." }),
    ),
  );
}

/** Whether it fired, and who ran then: that is read from the trace, which takes longer. */
async function showFired(hook, detail, isOpen) {
  await quiet();
  if (!isOpen()) return;
  const found = await request("hooks/fired", { name: hook.name });
  if (!isOpen()) return;
  detail.querySelector(".fired").replaceChildren(section("Did it fire in the last hour?", ...fired(found)));
}

function fired({ calls, unseen, handlers, latest }) {
  if (!calls) return [element("p", { className: "dim", textContent: unseen })];
  const ran = handlers.map(({ by, calls: times, did: words }) => {
    const what = Object.entries(words).map(([word, count]) => `${count.toLocaleString()} ${did(word)}`);
    return element("li", {}, span("by", by), " ", span("dim", `ran ${counted(times, "time", "times")}: ${what.join(", ")}`));
  });
  const last = latest.map(({ session, turn, record, time, decision, duration }) => {
    const rest = turn ? ["turn", turn, "dispatch", record] : [];
    const where = session ? element("a", { href: sessionAddress(session, ...rest), textContent: session }) : span("dim", "in no session");
    return element("li", { className: "tools" }, moment(time), where, ...(decision ? [badge(decision)] : []), span("dim", took(duration)));
  });
  return [
    element("p", { textContent: `Yes, ${counted(calls, "time", "times")}.` }),
    ...(ran.length ? [element("ul", { className: "rulings" }, ...ran)] : [element("p", { className: "dim", textContent: "Nobody ran." })]),
    section("The last times", element("ol", { className: "made" }, ...last)),
  ];
}
