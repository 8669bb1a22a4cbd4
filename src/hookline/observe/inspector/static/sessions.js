// The sessions that there are, the one written to last first.
import { listen, request } from "./api.js";
import { counted, element, empty, moment, span } from "./elements.js";
import { VirtualList, held } from "./list.js";
import { soon } from "./soon.js";

export const sessionAddress = (id, ...rest) =>
  `#/${["session", id, ...rest].map(encodeURIComponent).join("/")}`;

export async function sessionsScreen({ place, signal, failed }) {
  let all = [];
  const filter = element("input", {
    type: "search", id: "session-filter", placeholder: "Find a session", "aria-label": "Find a session",
  });
  const wanted = () => {
    const text = filter.value.trim().toLowerCase();
    return text ? all.filter((each) => `${each.id} ${each.name} ${each.preview}`.toLowerCase().includes(text)) : all;
  };
  const list = new VirtualList({
    label: "Sessions", height: 60, fetch: held(wanted), render: row,
    choose: ({ id }) => (location.hash = sessionAddress(id)),
    nothing: "No session has that in its name or its first message.",
  });
  const nothing = empty("Nothing was recorded yet. `hookline run \"hello\"` begins a session.");
  const refresh = async () => {
    all = await request("sessions", { limit: 1000 });
    nothing.hidden = all.length > 0;
    list.frame.hidden = !all.length;
    await list.refresh();
  };
  filter.addEventListener("input", () => list.refresh());
  place.append(
    element("div", { className: "tools" }, element("h2", { textContent: "Sessions" }), filter),
    nothing,
    list.frame,
  );
  await refresh();
  listen({ dispatches: "false" }, signal, { frame: soon(refresh, failed) }).catch(failed);
}

function row({ id, name, preview, updated, entries, parent, channel, workspace, busy }) {
  const title = element("div", { className: "title" }, span("name", name || preview || id));
  if (busy) title.append(element("span", { className: "badge live", textContent: "running" }));
  if (channel) title.append(span("badge", channel));
  const about = [id, workspace, counted(entries, "entry", "entries"), parent && `forked from ${parent}`];
  return [
    element("div", { className: "grow" }, title, span("dim", about.filter(Boolean).join(" · "))),
    moment(updated),
  ];
}
