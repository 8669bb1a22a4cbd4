// What stands inside a line of Markdown: code, emphasis, links, line breaks. The text is read once,
// what is open at a time is bounded, and marks that find no partner stay what they are: text.
import { element } from "./elements.js";

const OPEN = 24; // marks and brackets that may wait at once, which bounds the nesting too
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;

/** The nodes of a line, as a fragment. */
export function inline(text) {
  return built(tokens(text));
}

function tokens(text) {
  const found = [];
  const open = []; // marks and brackets that wait for their partner
  const ticks = backticks(text);
  let plain = 0;
  let at = 0;
  const flush = (end) => end > plain && found.push({ text: text.slice(plain, end) });
  const skip = (end) => (plain = at = end);
  const wait = (token) => {
    if (open.length === OPEN) open.shift();
    open.push(token);
    found.push(token);
  };
  while (at < text.length) {
    const char = text[at];
    if (char === "\\" && at + 1 < text.length && PUNCTUATION.test(text[at + 1])) {
      flush(at);
      plain = at + 1;
      at += 2;
    } else if (char === "`") {
      const length = run(text, at);
      const end = ticks(length, at + length);
      if (end === undefined) at += length;
      else {
        flush(at);
        found.push({ code: unpadded(text.slice(at + length, end).replaceAll("\n", " ")) });
        skip(end + length);
      }
    } else if (char === "*" || char === "_" || (char === "~" && text[at + 1] === "~")) {
      flush(at);
      const length = run(text, at);
      marks(text, at, length, open, found, wait);
      skip(at + length);
    } else if (char === "[" || (char === "!" && text[at + 1] === "[")) {
      flush(at);
      const length = char === "!" ? 2 : 1;
      wait({ text: text.slice(at, at + length), bracket: true });
      skip(at + length);
    } else if (char === "]") {
      const index = open.findLastIndex((token) => token.bracket);
      const target =
        index >= 0 && text[at + 1] === "("
          ? /^\(\s*<?([^\s()<>]{1,2000})>?(?:\s+["'][^"']{0,300}["'])?\s*\)/.exec(
              text.slice(at + 1, at + 2400),
            )
          : null;
      if (target) {
        flush(at);
        Object.assign(open[index], { text: "", begin: "a", href: target[1] });
        found.push({ end: open[index] });
        skip(at + 1 + target[0].length);
      } else at += 1;
      if (index >= 0) open.length = index;
    } else if (
      (char === "h" || char === "<") &&
      (char === "<" || !/\w/.test(text[at - 1] ?? "")) &&
      /^<?https?:\/\//.test(text.slice(at, at + 9))
    ) {
      const url = /^https?:\/\/[^\s<>"`|\\^{}]+/
        .exec(text.slice(char === "<" ? at + 1 : at, at + 2000))?.[0]
        .replace(/[.,;:!?'*_~)\]]+$/, "");
      const length = (url?.length ?? 0) + (char === "<" ? 2 : 0);
      if (url && (char !== "<" || text[at + length - 1] === ">")) {
        flush(at);
        found.push({ link: url });
        skip(at + length);
      } else at += 1;
    } else if (char === "\n") {
      flush(at);
      found.push({ line: true });
      skip(at + 1);
    } else at += 1;
  }
  flush(at);
  return found;
}

/** Closes what a run of marks closes, and opens with the rest. */
function marks(text, at, length, open, found, wait) {
  const char = text[at];
  const before = text[at - 1] ?? " ";
  const after = text[at + length] ?? " ";
  let opens = !/\s/.test(after) && (WORD.test(after) || !WORD.test(before));
  let closes = !/\s/.test(before) && (WORD.test(before) || !WORD.test(after));
  if (char === "_") [opens, closes] = [opens && !WORD.test(before), closes && !WORD.test(after)];
  let left = length > 3 || (char === "~" && length !== 2) ? 0 : length;
  if (!left) found.push({ text: text.slice(at, at + length) });
  while (closes && left) {
    const index = open.findLastIndex((token) => token.char === char && token.size <= left);
    if (index < 0 || open.slice(index).some((token) => token.bracket)) break;
    const partner = open[index];
    Object.assign(partner, {
      text: "",
      begin: char === "~" ? "del" : partner.size === 2 ? "strong" : "em",
    });
    found.push({ end: partner });
    open.length = index;
    left -= partner.size;
  }
  while (left) {
    const size = left >= 2 ? 2 : 1;
    const token = { text: char.repeat(size), char, size };
    if (opens) wait(token);
    else found.push(token);
    left -= size;
  }
}

/** Code between backticks may have a space on each side to keep them apart. */
const unpadded = (text) =>
  text.trim() && text.startsWith(" ") && text.endsWith(" ") ? text.slice(1, -1) : text;

const run = (text, at) => {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end - at;
};

/** Finds where a run of backticks of some length comes next; each run is looked at once. */
function backticks(text) {
  const places = new Map();
  for (const { 0: ticks, index } of text.matchAll(/`+/g)) {
    if (!places.has(ticks.length)) places.set(ticks.length, []);
    places.get(ticks.length).push(index);
  }
  const passed = new Map();
  return (length, from) => {
    const found = places.get(length) ?? [];
    let next = passed.get(length) ?? 0;
    while (next < found.length && found[next] < from) next += 1;
    passed.set(length, next);
    return found[next];
  };
}

function built(list) {
  const root = document.createDocumentFragment();
  const stack = [{ node: root }];
  for (const token of list) {
    const top = stack.at(-1).node;
    if (token.begin) {
      const made = token.begin === "a" ? link(token.href) : element(token.begin);
      top.append(made);
      stack.push({ node: made, token });
    } else if (token.end) {
      // What was opened inside and not closed ended as text, so the partner is on top.
      if (stack.at(-1).token === token.end) stack.pop();
    } else if (token.code !== undefined) top.append(element("code", { textContent: token.code }));
    else if (token.link) {
      const made = link(token.link);
      made.append(token.link);
      top.append(made);
    } else if (token.line) top.append(element("br"));
    else top.append(token.text);
  }
  return root;
}

/** A link, where the address is one that a reader may be sent to; else its text stands there. */
function link(address) {
  let target;
  try {
    target = new URL(address);
  } catch {
    return element("span", { title: address });
  }
  if (!["http:", "https:", "mailto:"].includes(target.protocol))
    return element("span", { title: address });
  return element("a", {
    href: target.href,
    target: "_blank",
    rel: "noopener noreferrer",
    title: target.href,
  });
}
