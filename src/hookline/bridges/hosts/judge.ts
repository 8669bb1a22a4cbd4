const COMMAND: string[] = ["COMMAND"]
const ENV: Record<string, string> = {"ENV": ""}

/** Ask Hookline about an event. Whatever is not an answer to it is an error, and so a no. */
function judge(event: Record<string, unknown>): Promise<Record<string, any>> {
  return new Promise((resolve, reject) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { env: { ...process.env, ...ENV } })
    let out = ""
    let said = ""
    child.stdout.setEncoding("utf8").on("data", (data: string) => (out += data))
    child.stderr.setEncoding("utf8").on("data", (data: string) => (said += data))
    child.on("error", (error: Error) => reject(new Error(`hookline cannot be started: ${error.message}`)))
    child.on("close", (code: number | null) => {
      try {
        const answer = code === 0 ? JSON.parse(out) : {}
        if (answer.judged === event.event) return resolve(answer)
      } catch {}
      reject(new Error(said.trim() || `hookline ended with ${code}`))
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}
