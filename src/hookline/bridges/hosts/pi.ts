// Written by `hookline hook install --for pi`; `hookline hook uninstall --for pi` removes it.
import { spawn } from "node:child_process"

// JUDGE

const reason = (error: unknown) => (error instanceof Error ? error.message : String(error))
const textOf = (content: any) =>
  typeof content === "string"
    ? content
    : (content ?? []).filter((part: any) => part.type === "text").map((part: any) => part.text).join("\n")

export default function (pi: any) {
  const about = (ctx: any) => ({ session: ctx.sessionManager.getSessionId(), cwd: ctx.cwd })
  const observed = async (event: Record<string, unknown>) => {
    await judge(event).catch((error) => console.error(reason(error)))
  }

  pi.on("session_start", async (event: any, ctx: any) =>
    observed({ event: "session_start", ...about(ctx), text: event.reason }),
  )
  pi.on("session_shutdown", async (event: any, ctx: any) => {
    if (event.reason !== "reload") await observed({ event: "session_end", ...about(ctx), text: event.reason })
  })
  pi.on("input", async (event: any, ctx: any) => {
    if (event.source === "extension") return
    try {
      const answer = await judge({ event: "prompt", ...about(ctx), text: event.text })
      if (answer.deny === undefined) {
        return answer.text === undefined ? undefined : { action: "transform", text: answer.text, images: event.images }
      }
      throw new Error(answer.deny)
    } catch (error) {
      if (ctx.hasUI) ctx.ui.notify(reason(error), "error")
      else console.error(`hookline: ${reason(error)}`)
      return { action: "handled" }
    }
  })
  pi.on("tool_call", async (event: any, ctx: any) => {
    try {
      const call = { tool: event.toolName, input: event.input, id: event.toolCallId }
      const answer = await judge({ event: "tool_call", ...about(ctx), ...call })
      if (answer.deny !== undefined) return { block: true, reason: answer.deny }
      if (answer.input === undefined) return
      for (const key of Object.keys(event.input)) delete event.input[key]
      Object.assign(event.input, answer.input)
    } catch (error) {
      return { block: true, reason: reason(error) }
    }
  })
  pi.on("tool_result", async (event: any, ctx: any) => {
    const call = { tool: event.toolName, input: event.input, id: event.toolCallId, error: event.isError }
    let text: string
    try {
      const result = textOf(event.content)
      const answer = await judge({ event: "tool_result", ...about(ctx), ...call, result })
      if (answer.text === undefined) return
      text = answer.text
    } catch (error) {
      text = `[withheld: ${reason(error)}]`
    }
    return { content: [{ type: "text", text }], details: {} }
  })
  const answered = async (message: any, ctx: any) => {
    const said = textOf(message.content)
    if (!said) return message
    let text: string
    try {
      const answer = await judge({ event: "model_answer", ...about(ctx), text: said })
      if (answer.deny === undefined && answer.text === undefined) return message
      text = answer.text ?? `[withheld: ${answer.deny}]`
    } catch (error) {
      text = `[withheld: ${reason(error)}]`
    }
    const others = message.content.filter((part: any) => part.type !== "text")
    return { ...message, content: [{ type: "text", text }, ...others] }
  }
  // pi waits for this event, unlike `agent_end`: here the agent can still be sent on.
  pi.on("message_end", async (event: any, ctx: any) => {
    if (event.message.role !== "assistant") return
    const message = await answered(event.message, ctx)
    if (message.stopReason === "stop") {
      try {
        const answer = await judge({ event: "stop", ...about(ctx), text: textOf(message.content) })
        if (answer.deny !== undefined) pi.sendUserMessage(answer.deny, { deliverAs: "followUp" })
      } catch (error) {
        console.error(reason(error))
      }
    }
    if (message !== event.message) return { message }
  })
  pi.on("session_before_compact", async (event: any, ctx: any) => {
    try {
      const answer = await judge({ event: "compact", ...about(ctx), text: event.customInstructions ?? "" })
      if (answer.deny !== undefined) return { cancel: true }
    } catch {
      return { cancel: true }
    }
  })
  pi.on("session_compact", async (_event: any, ctx: any) => observed({ event: "compacted", ...about(ctx) }))
}
