// Written by `hookline hook install --for opencode`; `hookline hook uninstall --for opencode` removes it.
import { spawn } from "node:child_process"

// JUDGE

const reason = (error: unknown) => (error instanceof Error ? error.message : String(error))

export const Hookline = async ({ directory }: { directory: string }) => {
  const about = (session: string) => ({ session, cwd: directory })
  return {
    "chat.message": async (input: any, output: any) => {
      const texts = output.parts.filter((part: any) => part.type === "text" && !part.synthetic)
      const text = texts.map((part: any) => part.text).join("\n")
      const answer = await judge({ event: "prompt", ...about(input.sessionID), text })
      if (answer.deny !== undefined) throw new Error(answer.deny)
      if (answer.text !== undefined && texts.length) {
        texts[0].text = answer.text
        for (const part of texts.slice(1)) part.text = ""
      }
    },
    "tool.execute.before": async (input: any, output: any) => {
      const call = { tool: input.tool, input: output.args ?? {}, id: input.callID }
      const answer = await judge({ event: "tool_call", ...about(input.sessionID), ...call })
      if (answer.deny !== undefined) throw new Error(answer.deny)
      if (answer.input !== undefined) {
        for (const key of Object.keys(output.args)) delete output.args[key]
        Object.assign(output.args, answer.input)
      }
    },
    "tool.execute.after": async (input: any, output: any) => {
      const call = { tool: input.tool, input: input.args ?? {}, id: input.callID }
      try {
        const event = { event: "tool_result", ...about(input.sessionID), ...call, result: output.output }
        const answer = await judge(event)
        if (answer.text === undefined) return
        output.output = answer.text
      } catch (error) {
        output.output = `[withheld: ${reason(error)}]`
      }
      output.title = ""
      output.metadata = {}
    },
    "experimental.text.complete": async (input: any, output: any) => {
      try {
        const event = { event: "model_answer", ...about(input.sessionID), text: output.text }
        const answer = await judge(event)
        if (answer.deny !== undefined) output.text = `[withheld: ${answer.deny}]`
        else if (answer.text !== undefined) output.text = answer.text
      } catch (error) {
        output.text = `[withheld: ${reason(error)}]`
      }
    },
    "experimental.session.compacting": async (input: any) => {
      const answer = await judge({ event: "compact", ...about(input.sessionID) })
      if (answer.deny !== undefined) throw new Error(answer.deny)
    },
    event: async ({ event }: { event: any }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id ?? ""
      const moment: Record<string, any> = {
        "session.created": { event: "session_start", text: "startup" },
        "session.deleted": { event: "session_end" },
        "session.idle": { event: "stop" },
        "session.compacted": { event: "compacted" },
        "permission.asked": { event: "notification", model: "approval", text: "opencode asks for permission" },
      }[event.type as string]
      // These decide nothing: a failure is reported, and the conversation goes on.
      if (moment) await judge({ ...moment, ...about(session) }).catch((error) => console.error(reason(error)))
    },
  }
}
