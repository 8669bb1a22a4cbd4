// Questions that wait for a person: an approval with its exact call, or what a hook asks.
import { parsed, pretty } from "./answer.js";
import { announce, code, diff, element, visible } from "./elements.js";

const LOOKS = { approve: "primary", reject: "danger" };

const SETTLING = 300; // milliseconds: a click that was meant for something else answers nothing

export class Approvals {
  /** `answer(id, word, hash)` sends an answer to what was shown and says whether it could. */
  constructor(place, answer) {
    this.place = place;
    this.answer = answer;
  }

  show({ id, question, choices, default: usual, tool, arguments: given, diff: changes, hash }) {
    const title = element("h2", {
      id: `approval-${id}`,
      textContent: visible(question || `Run ${tool}?`),
    });
    const answer = (word) => this.answer(id, word, hash) && this.#close(card);
    const buttons = choices.map(({ answer: word, label }) =>
      this.#button(visible(label), tool ? (LOOKS[word] ?? "") : "", () => answer(word)),
    );
    const card = element(
      "div",
      { className: "approval", role: "group", "aria-labelledby": title.id },
      title,
    );
    card.dataset.id = id;
    if (tool) card.append(this.#call(tool, given, changes));
    if (buttons.length) card.append(element("div", { className: "buttons" }, ...buttons));
    else card.append(this.#form(usual ?? "", title.id, answer));
    this.place.querySelector(`[data-id="${CSS.escape(id)}"]`)?.remove();
    this.place.append(card);
    announce(`${tool ? "Waiting for your approval" : "Waiting for your answer"}: ${title.textContent}`);
  }

  #button(textContent, className, answer) {
    const button = element("button", { type: "button", className, textContent, disabled: true });
    setTimeout(() => (button.disabled = false), SETTLING);
    button.addEventListener("click", answer);
    return button;
  }

  /** All of what runs is in sight. */
  #call(tool, given, changes) {
    const call = code(visible(pretty(parsed(given))), visible(tool));
    if (!changes) return element("div", { className: "what" }, call);
    const title = element("summary", { textContent: "The exact call" });
    const exact = element("details", { open: true }, title, call);
    return element("div", { className: "what" }, diff(visible(changes)), exact);
  }

  /** A question that any text answers. */
  #form(usual, label, answer) {
    const input = element("input", { type: "text", value: usual, "aria-labelledby": label });
    const send = () => input.value.trim() && answer(input.value);
    input.addEventListener("keydown", (event) => event.key === "Enter" && send());
    return element("div", { className: "buttons" }, input, this.#button("Answer", "primary", send));
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
    (next?.querySelector("button, input") ?? document.getElementById("composer-text")).focus({
      preventScroll: true,
    });
  }
}
