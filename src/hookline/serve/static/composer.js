// Where a person writes or speaks.
import { announce, byId } from "./elements.js";
import { Recorder } from "./recorder.js";

const TOUCH = matchMedia("(pointer: coarse)");
const TALLEST = 200; // pixels

export class Composer {
  /** `on` has `say(text, parts)`, `cancel()` and `failed(message)`. */
  constructor(on) {
    this.on = on;
    this.field = byId("composer-text");
    this.recorder = new Recorder({
      started: () => this.#recording(true),
      tick: (seconds) => (byId("recording").textContent = clock(seconds)),
      stopped: () => this.#recording(false),
      recorded: (part) => on.say("", [part]),
      failed: on.failed,
    });
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.field.addEventListener("input", () => this.#grow());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    byId("record").addEventListener("click", () =>
      this.recorder.isRecording ? this.recorder.stop() : this.recorder.start(),
    );
    byId("discard").addEventListener("click", () => this.recorder.stop(false));
    byId("cancel").addEventListener("click", () => on.cancel());
  }

  /** Whether there is something to stop. */
  busy(busy) {
    const button = byId("cancel");
    if (!busy && document.activeElement === button) this.field.focus();
    button.hidden = !busy;
  }

  #submit() {
    if (this.recorder.isRecording) {
      this.recorder.stop();
      return;
    }
    const text = this.field.value.trim();
    if (!text) return;
    this.field.value = "";
    this.#grow();
    this.on.say(text);
  }

  /** Enter sends, with Shift it is a new line; a touch screen has no Shift, but a button to send. */
  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !TOUCH.matches) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === "Escape" && !byId("cancel").hidden) this.on.cancel();
  }

  #grow() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, TALLEST)}px`;
  }

  #recording(on) {
    byId("record").setAttribute("aria-pressed", String(on));
    byId("record").setAttribute("aria-label", on ? "Stop and send the recording" : "Record a question");
    byId("recording").textContent = clock(0);
    byId("recording").hidden = byId("discard").hidden = !on;
    this.field.hidden = on;
    if (!on) this.field.focus({ preventScroll: true });
    announce(on ? "Recording" : "Recording ended");
  }
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
