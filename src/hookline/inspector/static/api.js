// Asking for what is recorded, and listening to what happens.

const TOKEN = "hookline.token";
const ROOT = "/inspect/api/";
const PAUSE = 2000;

/** A token is wanted, or another one. */
export class Unauthorised extends Error {}

export const token = {
  get: () => localStorage.getItem(TOKEN) ?? "",
  set: (value) => localStorage.setItem(TOKEN, value),
};

function address(path, given = {}) {
  const made = new URL(ROOT + path, location.origin);
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && value !== "") made.searchParams.set(name, value);
  }
  return made;
}

const headers = () => (token.get() ? { Authorization: `Bearer ${token.get()}` } : {});

/** Ask for something; what goes wrong is an Error that says why. */
export async function request(path, given, options = {}) {
  const response = await fetch(address(path, given), {
    ...options,
    headers: { ...headers(), ...options.headers },
  });
  if (response.status === 401) throw new Unauthorised();
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const said = typeof body.detail === "string" ? body.detail : `The answer was ${response.status}.`;
    throw new Error(said);
  }
  return body;
}

/** Have something done. */
export const order = (path, body) =>
  request(path, {}, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
  });

/**
 * Listen until the signal says to stop; a connection that is lost is made again.
 * `EventSource` cannot carry a token, so the stream is read by hand.
 */
export async function listen(given, signal, { frame, state }) {
  while (!signal.aborted) {
    try {
      const response = await fetch(address("tail", given), { headers: headers(), signal });
      if (response.status === 401) throw new Unauthorised();
      if (!response.ok) throw new Error(`The answer was ${response.status}.`);
      state?.("watching");
      await read(response.body, frame);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Unauthorised) throw problem;
    }
    state?.("lost");
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

async function read(body, frame) {
  const lines = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await lines.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const each of events) {
      const data = each.split("\n").find((line) => line.startsWith("data: "));
      if (data) frame(JSON.parse(data.slice(6)));
    }
  }
}
