// Building pieces of the page. Everything that a model, a tool or a person wrote arrives here as text
// and becomes text nodes: nothing on this page is ever parsed as HTML.

/** An element with properties, attributes (`data-…`, `aria-…`, `role`) and children. */
export function element(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (key.includes("-") || key === "role") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** Say something to people who do not see the page. */
export function announce(text) {
  const place = byId("announcer");
  place.textContent = "";
  // The same words twice are read twice only when the region was empty in between.
  requestAnimationFrame(() => (place.textContent = text.slice(0, 2000)));
}

/** A text in a box with a button that copies it. */
export function code(text, language = "") {
  const body = element("code", { textContent: text });
  const copy = element("button", { type: "button", className: "copy", textContent: "Copy" });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(body.textContent);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Cannot copy";
    }
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  const head = element(
    "div",
    { className: "code-head" },
    element("span", { textContent: language }),
    copy,
  );
  const box = element("pre", { tabIndex: 0 }, body);
  return element("div", { className: "code" }, head, box);
}

/** A unified diff with its lines coloured; the signs stay, so that colour is not all there is. */
export function diff(text) {
  const lines = text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => {
      const kind = /^(---|\+\+\+)( |$)/.test(line)
        ? "file"
        : { "+": "added", "-": "removed", "@": "hunk" }[line[0]];
      return element("span", { className: kind ? `line ${kind}` : "line", textContent: `${line}\n` });
    });
  return element("pre", { className: "diff", tabIndex: 0 }, element("code", {}, ...lines));
}

/** A text with what nobody sees written out: signs without width, or that turn the writing round. */
export const visible = (text) =>
  text.replace(
    /[\p{DI}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}|(?![\n\t])\p{Cc}/gu,
    (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`,
  );

/** Whether a text is a unified diff. */
export const isDiff = (text) => /^--- .*\n\+\+\+ .*\n@@ /m.test(text.slice(0, 4000));
