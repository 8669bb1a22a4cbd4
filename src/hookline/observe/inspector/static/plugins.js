// The plugins: which take part, what they are on, and what is wrong.
import { quiet, request } from "./api.js";
import { badge, counted, element, empty, section, span, took } from "./elements.js";

export async function pluginsScreen({ place, signal, failed }) {
  const column = element("div", { className: "column" });
  place.append(column);
  column.append(...shown(await request("plugins", { health: false })));
  // How they did is read from the trace, which takes longer.
  const measured = async () => {
    await quiet();
    if (signal.aborted) return;
    const found = await request("plugins");
    if (!signal.aborted) column.replaceChildren(...shown(found));
  };
  measured().catch(failed);
}

function shown(found) {
  const parts = [element("div", { className: "tools" }, element("h2", { textContent: "Plugins" }))];
  if (found.failures.length) parts.push(section("Left out", list(found.failures.map(({ text }) => [span("reason", text)]), "problems")));
  if (found.warnings.length) parts.push(section("Warnings", list(found.warnings.map((text) => [span("reason", text)]), "problems")));
  if (found.not_trusted.length) {
    parts.push(section("Inert, because not trusted (`hookline trust`)", list(found.not_trusted.map((text) => [span("place", text)]))));
  }
  parts.push(...found.plugins.map(plugin));
  if (found.files.length) parts.push(section("Hook files", list(found.files.map(({ name, handlers }) => [span("by", name), " ", span("dim", counted(handlers, "handler", "handlers"))]))));
  if (found.handlers.length) {
    parts.push(section("Handlers that belong to no plugin", list(found.handlers.map(({ name, hooks, health }) => [span("by", name), healthy(health) ?? "", links(hooks)]))));
  }
  if (!found.plugins.length) parts.push(empty("There are no plugins."));
  return parts;
}

function plugin({ name, version, order, provides, source, state, reason, hooks, health }) {
  const about = [version, order !== null && `order ${order}`, source, provides.length && `provides ${provides.join(", ")}`];
  return element(
    "section",
    { className: "card" },
    element("div", { className: "tools" }, element("h3", { textContent: name }), badge(state)),
    span("dim", about.filter(Boolean).join(" · ")),
    ...(reason ? [span("reason", reason)] : []),
    healthy(health),
    links(hooks),
  );
}

/** How a plugin did in the last hour, where it was traced. */
function healthy(health) {
  if (!health) return undefined;
  const { calls, errors, p50, p95 } = health;
  const failed = errors ? badge("failed") : undefined;
  const text = `${counted(calls, "call", "calls")} in the last hour, ${errors} failed, half within ${took(p50)}, 95 % within ${took(p95)}`;
  return element("p", { className: "dim" }, text, " ", failed);
}

const list = (rows, className = "rulings") =>
  element("ul", { className }, ...rows.map((row) => element("li", {}, ...row)));

function links(hooks) {
  const made = [...new Set(hooks)].map((name) => element("a", { href: `#/hooks/${encodeURIComponent(name)}`, textContent: name }));
  return element("p", { className: "links" }, ...made.flatMap((link) => [link, " "]));
}
