// Asking for what is recorded, and listening to what happens.

const TOKEN = "hookline.token";
const ROOT = "/inspect/api/";
const PAUSE = 2000;

/** A token is wanted, or another one. */
export class Unauthorised extends Error {}

/** The token, as long as this tab lasts. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (value) => sessionStorage.setItem(TOKEN, value),
};

/** A link may bring the token after its #: it is kept, and taken out of the address at once. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return;
  token.set(given);
  history.replaceState(null, "", location.pathname);
}

function address(path, given = {}) {
  const made = new URL(ROOT + path, location.origin);
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && value !== "") made.searchParams.set(name, value);
  }
  return made;
}

const headers = () => (token.get() ? { Authorization: `Bearer ${token.get()}` } : {});

let pending = 0; // how many answers are waited for

/** Ask for something; what goes wrong is an Error that says why. */
export async function request(path, given, options = {}) {
  pending += 1;
  try {
    return await answer(path, given, options);
  } finally {
    pending -= 1;
  }
}

/** Wait until nothing else is asked for: what takes long lets what was clicked on go first. */
export async function quiet() {
  do await new Promise((done) => setTimeout(done, 50));
  while (pending);
}

async function answer(path, given, options) {
  const response = await fetch(address(path, given), {
    ...options,
    headers: { ...headers(), ...options.headers },
  });
  const body = await response.json().catch(() => ({}));
  const said = typeof body.detail === "string" ? body.detail : `The answer was ${response.status}.`;
  if ([401, 403].includes(response.status) || /wrong tokens/.test(said)) throw new Unauthorised(said);
  if (!response.ok) {
    throw Object.assign(new Error(said), { status: response.status });
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
      await read(response.body, (each) => {
        if (each.type === "watching") state?.("watching"); // from here on, nothing is missed
        frame(each);
      });
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
