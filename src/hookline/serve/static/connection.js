// The connection to the gateway: one WebSocket for the frames, and plain requests for the rest.
// A connection that is lost is made again, after a pause that grows.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
const PING_EVERY = 25_000;
const PONG_WITHIN = 10_000;
const BAD_SESSION = 4400; // codes with which the gateway closes a connection
const TOO_LARGE = 1009;
const TOKEN = "hookline.token";

/** The gateway wants a token, or another one; the message says why. */
export class Unauthorised extends Error {}

/** The token, as long as this tab lasts: what is kept longer, others who use the browser have too. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (value) => sessionStorage.setItem(TOKEN, value),
};

/** A token as a word that may stand in a header. */
const word = (text) =>
  encodeURIComponent(text).replace(/[()]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);

/** Ask the gateway over HTTP; the answer is JSON, and what goes wrong is an Error that says why. */
export async function request(path) {
  const headers = token.get() ? { Authorization: `Bearer ${token.get()}` } : {};
  const response = await fetch(path, { headers, signal: AbortSignal.timeout(20_000) });
  const body = await response.json().catch(() => ({}));
  if (response.status === 401 || (response.status === 429 && /wrong tokens/.test(body.detail)))
    throw new Unauthorised(body.detail);
  if (!response.ok) {
    const problem = new Error(
      body.detail ?? body.error?.message ?? `The gateway answered ${response.status}.`,
    );
    throw Object.assign(problem, { status: response.status });
  }
  return body;
}

/** Keeps a WebSocket to one session open. */
export class Connection {
  /** `on` has `frame(frame)`, `up()`, `down(seconds)`, `unauthorised(why)`, `refused(why)`, `tooLarge()`. */
  constructor(on) {
    this.on = on;
    this.session = "";
    this.socket = undefined;
    this.failures = 0;
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => document.hidden || this.retry());
    addEventListener("pagehide", () => this.socket?.close());
    addEventListener("pageshow", (event) => event.persisted && this.open(this.session));
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Leave the session that is open, and open this one. */
  open(session) {
    this.session = session;
    this.failures = 0;
    this.#connect();
  }

  /** Send a frame; false where there is no connection. */
  send(frame) {
    if (!this.isOpen) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** Try again now instead of after the pause. */
  retry() {
    if (this.timer && !this.isOpen) this.#connect();
  }

  #connect() {
    this.#drop();
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const address = new URL(`${scheme}//${location.host}/ws`);
    address.searchParams.set("session", this.session);
    const secret = token.get();
    const protocols = secret ? ["bearer", word(secret)] : [];
    const socket = (this.socket = new WebSocket(address, protocols));
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.failures = 0;
      this.pinging = setInterval(() => this.#ping(socket), PING_EVERY);
      this.on.up();
    };
    socket.onmessage = ({ data }) => {
      clearTimeout(this.silence);
      const frame = JSON.parse(data);
      if (frame.type !== "pong") this.on.frame(frame);
    };
    socket.onclose = ({ code, reason }) => {
      if (socket !== this.socket) return;
      if (code === TOO_LARGE) this.on.tooLarge();
      if (code !== BAD_SESSION) return void this.#lost(socket, opened);
      this.#drop();
      this.on.refused(reason);
    };
  }

  /** A connection may be dead without anybody having said so. */
  #ping(socket) {
    socket.send('{"type":"ping"}');
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      socket.close();
      this.#lost(socket, true); // the closing of a dead connection takes its time
    }, PONG_WITHIN);
  }

  async #lost(socket, opened) {
    if (socket !== this.socket) return;
    this.#drop();
    const refused = opened ? undefined : await refusal();
    if (refused) {
      this.on.unauthorised(refused);
      return;
    }
    if (this.socket || this.timer) return; // somebody tried again in the meantime
    const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.failures);
    const pause = longest * (0.5 + Math.random() / 2); // so that not all pages come back at once
    this.failures += 1;
    this.timer = setTimeout(() => this.#connect(), pause);
    this.on.down(Math.ceil(pause / 1000));
  }

  #drop() {
    clearTimeout(this.timer);
    clearInterval(this.pinging);
    clearTimeout(this.silence);
    this.timer = undefined;
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }
}

/** Why a WebSocket was not let in is not told to a page; a request is told. */
async function refusal() {
  try {
    await request("/api/sessions?limit=1");
  } catch (problem) {
    return problem instanceof Unauthorised ? problem : undefined;
  }
  return undefined;
}
