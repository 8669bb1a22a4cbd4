"""The style and the script of an exported page. The page's policy allows exactly these two texts."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --mine: #2a6fdb22; --dim: #777; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; display: grid;
  grid-template: auto 1fr / minmax(14rem, 24rem) 1fr; height: 100vh; }
header { grid-column: 1 / -1; padding: .6rem 1rem; border-bottom: 1px solid var(--line);
  display: flex; gap: 1rem; align-items: baseline; flex-wrap: wrap; }
h1 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
header p, time, .note, .calls { color: var(--dim); font-size: .85rem; margin: 0; }
header label { margin-left: auto; font-size: .85rem; }
nav { overflow: auto; padding: .6rem; border-right: 1px solid var(--line);
  font: 12px/1.6 ui-monospace, monospace; }
nav a, nav span { display: block; white-space: pre; color: inherit; text-decoration: none; }
nav a:hover, nav a:focus { background: var(--soft); }
nav a.here { font-weight: bold; }
nav a.on { background: var(--mine); }
main { overflow: auto; padding: 1rem; }
article { max-width: 56rem; margin: 0 auto .7rem; padding: .5rem .8rem; border-radius: .4rem;
  border: 1px solid transparent; }
article.user { background: var(--mine); }
article.assistant { border-color: var(--line); }
article.anchor { border: 1px dashed var(--line); }
article.tool, article.journal { background: var(--soft); padding: .2rem .8rem; }
article.journal { display: none; }
body.all article.journal { display: block; }
article[hidden] { display: none !important; }
article:target { outline: 2px solid #2a6fdb; }
.top { display: flex; gap: .6rem; align-items: baseline; }
.top time { margin-left: auto; }
.who { font-weight: 600; }
article.tool .who, article.journal .who { font: 13px ui-monospace, monospace; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary time { float: right; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; font: inherit; }
article.tool pre, article.journal pre { font: 13px/1.5 ui-monospace, monospace; max-height: 30rem;
  overflow: auto; }
mark { border-radius: .2rem; padding: 0 .3rem; font-size: .85rem; }
@media (max-width: 50rem) { body { display: block; height: auto; }
  nav { max-height: 40vh; border-right: 0; border-bottom: 1px solid var(--line); } }
@media print { nav, header label { display: none; } body { display: block; height: auto; } }
"""

SCRIPT: Final = """
"use strict";
const tape = JSON.parse(document.getElementById("tape").textContent);
const parents = new Map(Object.entries(tape.parents));
const children = new Map();
for (const [id, parent] of parents) children.set(parent, [...(children.get(parent) ?? []), id]);

// The branch through an entry: back to the root, and on to its newest end.
function branch(id) {
  const path = new Set();
  for (let at = id; at && !path.has(at); at = parents.get(at)) path.add(at);
  for (let at = id; at; at = children.get(at)?.at(-1)) path.add(at);
  return path;
}

function show(id) {
  const path = branch(id);
  for (const each of document.querySelectorAll("article")) each.hidden = !path.has(each.id.slice(2));
  for (const each of document.querySelectorAll("nav a"))
    each.classList.toggle("on", path.has(each.dataset.id));
}

const wanted = location.hash.slice(3);
show(parents.has(wanted) ? wanted : tape.leaf);
document.querySelector("nav").addEventListener("click", (click) => {
  const id = click.target.dataset?.id;
  if (id && parents.has(id)) show(id);
});
document.getElementById("details").addEventListener("change", (change) =>
  document.body.classList.toggle("all", change.target.checked));
"""
