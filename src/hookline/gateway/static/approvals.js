// Questions that wait for a person: the exact call, and what may be answered.
import { parsed, pretty } from "./answer.js";
import { announce, code, diff, element, visible } from "./elements.js";

const ANSWERS = [
  ["approve", "Approve once", "primary"],
  ["session", "Approve for this session", ""],
  ["reject", "Reject", "danger"],
];

const SETTLING = 300; // milliseconds: a click that was meant for something else answers nothing

export class Approvals {
  /** `answer(id, word, hash)` sends an answer to what was shown and says whether it could. */
  constructor(place, answer) {
    this.place = place;
    this.answer = answer;
  }

  show({ id, question, tool, arguments: given, diff: changes, hash }) {
    const title = element("h2", {
      id: `approval-${id}`,
      textContent: visible(question || `Run ${tool}?`),
    });
    const buttons = ANSWERS.map(([word, label, kind]) => {
      const button = element("button", {
        type: "button",
        className: kind,
        textContent: label,
        disabled: true,
      });
      setTimeout(() => (button.disabled = false), SETTLING);
      button.addEventListener("click", () => this.answer(id, word, hash) && this.#close(card));
      return button;
    });
    const card = element(
      "div",
      { className: "approval", role: "group", "aria-labelledby": title.id },
      title,
    );
    card.dataset.id = id;
    const call = code(visible(pretty(parsed(given))), visible(tool));
    if (changes) {
      const title = element("summary", { textContent: "The exact call" });
      const exact = element("details", { open: true }, title, call); // all of what runs is in sight
      card.append(element("div", { className: "what" }, diff(visible(changes)), exact));
    } else card.append(element("div", { className: "what" }, call));
    card.append(element("div", { className: "buttons" }, ...buttons));
    this.place.querySelector(`[data-id="${CSS.escape(id)}"]`)?.remove();
    this.place.append(card);
    announce(`Waiting for your approval: ${title.textContent}`);
  }

  /** It was answered: here, in another tab, or somewhere else. */
  done(id) {
    const card = this.place.querySelector(`[data-id="${CSS.escape(id)}"]`);
    if (card?.contains(document.activeElement)) this.#close(card);
    else card?.remove();
  }

  clear() {
    this.place.replaceChildren();
  }

  /** The keyboard stays where the next answer is given. */
  #close(card) {
    const next = card.nextElementSibling ?? card.previousElementSibling;
    card.remove();
    (next?.querySelector("button") ?? document.getElementById("composer-text")).focus({
      preventScroll: true,
    });
  }
}
