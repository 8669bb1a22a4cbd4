// Markdown as a model writes it, made into DOM nodes. What the model says is hostile input: there is no
// way from it to HTML, links go to the web or to mail and nowhere else, pictures are links (a picture
// that loads tells a stranger that it was seen), nesting is bounded, and all of it takes linear time.
import { code, element } from "./elements.js";
import { inline } from "./inline.js";

const DEPTH = 8; // of quotes and lists
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(.*)|)$/;
const QUOTE = /^ {0,3}> ?/;
const TASK = /^\[([ xX])\]\s+/;

/** The nodes of a Markdown text. */
export function markdown(text) {
  return blocks(text.split(/\r\n?|\n/), 0).map((block) => block.node);
}

/** A Markdown text that grows: finished blocks stay as they are, only the last one is made again. */
export class Growing {
  constructor(place) {
    this.place = place;
    this.text = "";
    this.settled = 0; // where the last block begins
    this.open = []; // its nodes
    this.waiting = false;
    this.pause = 0;
  }

  add(delta) {
    this.text += delta;
    if (this.waiting) return;
    this.waiting = true;
    // A tab in the background gets no frames; a long last block gets fewer of them.
    const draw = () => this.waiting && this.draw();
    if (document.hidden || this.pause > 8) setTimeout(draw, Math.min(1000, 16 + this.pause * 4));
    else requestAnimationFrame(draw);
  }

  draw() {
    this.waiting = false;
    const started = performance.now();
    const lines = this.text.slice(this.settled).split("\n");
    const made = blocks(
      lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line)),
      0,
    );
    for (const node of this.open) node.remove();
    this.place.append(...made.map((block) => block.node));
    const last = made.at(-1);
    if (last) {
      for (let line = 0; line < last.line; line += 1) this.settled += lines[line].length + 1;
      this.open = [last.node];
    }
    this.pause = performance.now() - started;
  }
}

/** The blocks that the lines make: each with its node and the number of its first line. */
function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [node, next] = block(lines, at, depth);
    found.push({ node, line: at });
    at = next;
  }
  return found;
}

function block(lines, at, depth) {
  const line = lines[at];
  let match;
  if ((match = FENCE.exec(line))) return fenced(lines, at, match);
  if ((match = HEADING.exec(line))) {
    // The page has its own first heading.
    const level = Math.min(6, match[1].length + 1);
    return [element(`h${level}`, {}, inline((match[2] ?? "").trim())), at + 1];
  }
  if (RULE.test(line)) return [element("hr"), at + 1];
  if (depth < DEPTH && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEPTH && ITEM.test(line)) return list(lines, at, depth);
  if (isTable(lines, at)) return table(lines, at);
  return paragraph(lines, at, depth);
}

function fenced(lines, at, [, fence, info]) {
  const body = [];
  let next = at + 1;
  const closing = (line) => {
    const text = line.trim();
    return text.length >= fence.length && text === fence[0].repeat(text.length);
  };
  while (next < lines.length && !closing(lines[next])) body.push(lines[next++]);
  return [code(body.join("\n"), info.trim().split(/\s/)[0].slice(0, 40)), next + 1];
}

function quote(lines, at, depth) {
  const body = [];
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next])) body.push(lines[next++].replace(QUOTE, ""));
  return [element("blockquote", {}, ...blocks(body, depth + 1).map((inner) => inner.node)), next];
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at])[2];
  const ordered = /\d/.test(first);
  const made = element(ordered ? "ol" : "ul");
  if (ordered) made.start = Number.parseInt(first, 10);
  let next = at;
  while (next < lines.length) {
    const match = ITEM.exec(lines[next]);
    if (!match || match[2].at(-1) !== first.at(-1) || RULE.test(lines[next])) break;
    const indent = match[1].length + match[2].length + Math.min(match[3]?.length ?? 1, 4);
    const body = [match[4] ?? ""];
    next += 1;
    while (next < lines.length && belongs(lines, next, indent))
      body.push(outdent(lines[next++], indent));
    made.append(item(body, depth));
    // A blank line between two items does not end the list.
    let ahead = next;
    while (ahead < lines.length && !lines[ahead].trim()) ahead += 1;
    if (ahead < lines.length && ITEM.test(lines[ahead])) next = ahead;
  }
  return [made, next];
}

/** Whether a line goes on with an item: indented, or a paragraph's lazy continuation. */
function belongs(lines, at, indent) {
  const line = lines[at];
  if (!line.trim())
    return (
      at + 1 < lines.length && width(lines[at + 1]) >= Math.min(indent, 2) && !!lines[at + 1].trim()
    );
  if (width(line) >= Math.min(indent, 2)) return true;
  return !!lines[at - 1].trim() && !ITEM.test(line) && !starts(line);
}

const width = (line) => /^[ \t]*/.exec(line)[0].replaceAll("\t", "    ").length;
const outdent = (line, indent) => {
  const spread = line.replace(/^[ \t]*/, (space) => space.replaceAll("\t", "    "));
  return spread.slice(Math.min(width(spread), indent));
};

function item(body, depth) {
  const made = element("li");
  const task = TASK.exec(body[0]);
  if (task) {
    const done = task[1] !== " ";
    body[0] = body[0].slice(task[0].length);
    made.className = "task";
    made.append(
      element("span", {
        role: "img",
        "aria-label": done ? "done" : "to do",
        textContent: done ? "☑ " : "☐ ",
      }),
    );
  }
  const nodes = blocks(body, depth + 1).map((inner) => inner.node);
  // An item with one paragraph reads as a line, not as a text of its own.
  const tight = nodes.filter((node) => node.tagName === "P").length === 1;
  made.append(
    ...nodes.flatMap((node) => (tight && node.tagName === "P" ? [...node.childNodes] : [node])),
  );
  return made;
}

const cells = (line) =>
  line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
const isTable = (lines, at) =>
  lines[at].includes("|") &&
  at + 1 < lines.length &&
  lines[at + 1].includes("-") &&
  cells(lines[at + 1]).every((cell) => /^:?-+:?$/.test(cell)) &&
  cells(lines[at]).length === cells(lines[at + 1]).length;

function table(lines, at) {
  const sides = cells(lines[at + 1]).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "middle" : "end") : "",
  );
  const row = (line, name) => {
    const texts = cells(line);
    return element(
      "tr",
      {},
      ...sides.map((side, column) => element(name, { className: side }, inline(texts[column] ?? ""))),
    );
  };
  const head = element("thead", {}, row(lines[at], "th"));
  const body = element("tbody");
  let next = at + 2;
  while (next < lines.length && lines[next].trim() && !starts(lines[next]))
    body.append(row(lines[next++], "td"));
  const box = element("div", {
    className: "table",
    tabIndex: 0,
    role: "region",
    "aria-label": "Table",
  });
  box.append(element("table", {}, head, body));
  return [box, next];
}

const starts = (line) => FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || RULE.test(line);

function paragraph(lines, at, depth) {
  const body = [lines[at].trimStart()];
  let next = at + 1;
  while (next < lines.length && lines[next].trim()) {
    const line = lines[next];
    const begun = ITEM.exec(line);
    // A number in the middle of a sentence begins a list only when it is the first.
    const item = begun && begun[4] && (!/\d/.test(begun[2]) || Number.parseInt(begun[2], 10) === 1);
    if (starts(line) || (item && depth < DEPTH) || isTable(lines, next)) break;
    body.push(line.trimStart());
    next += 1;
  }
  return [element("p", {}, inline(body.join("\n"))), next];
}
