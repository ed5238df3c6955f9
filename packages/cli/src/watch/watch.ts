// A run on the terminal from its first event to its last, over any number of connections. A thin shell: what is shown
// is `render`'s and `liveLines`' to say.

import { type Endpoint, follow, gateway, sseSource } from "@runwire/client";
import { type FinalState, messageOf, RunwireError } from "@runwire/protocol";
import { oneLine } from "./harmless.js";
import { listenToKeys } from "./keyboard.js";
import type { Line } from "./line.js";
import { cutLine } from "./lines.js";
import { liveLines, wheelMs } from "./live.js";
import { onLoss, sayLoss } from "./loss.js";
import { press, promptLine, type Reply } from "./prompt.js";
import { render } from "./render.js";
import { ownScreen } from "./screen.js";
import { whenSuspended } from "./suspend.js";
import { type Ask, askKey, firstTimeline, type Manner } from "./timeline.js";

export interface WatchOptions {
  readonly full: boolean;
  readonly children: "show" | "hide";
  readonly signal: AbortSignal;
  /** The person at the keyboard has seen enough. */
  readonly interrupt: () => void;
}

/** How the run ended. Throws the signal's reason, or a RunwireError that no retry mends. */
export async function watch(
  endpoint: Endpoint,
  run_id: string,
  options: WatchOptions,
): Promise<FinalState | null> {
  const { stdin } = process;
  const { screen, live } = ownScreen();
  const prompts = live && stdin.isTTY === true;
  const manner = (): Manner => ({
    live,
    prompts,
    columns: screen.columns,
    full: options.full,
    children: options.children,
  });

  let timeline = firstTimeline(run_id);
  let lines: Line[] = [];
  let lost = false;
  let typed = "";
  let asked: Ask | undefined;
  const replied = new Set<string>();

  function draw(): void {
    const ask = prompts ? timeline.asks.find((one) => !replied.has(askKey(one))) : undefined;
    if (ask === undefined || asked === undefined || askKey(ask) !== askKey(asked)) typed = "";
    asked = ask;
    const below = [
      ...liveLines(timeline, Date.now(), manner()),
      ...(lost ? [cutLine("", { text: "⟳ the connection was lost; trying again", style: "yellow" })] : []),
      ...(ask === undefined ? [] : [promptLine(ask, typed)]),
    ];
    screen.draw(lines, below, ask !== undefined);
    lines = [];
  }

  const onStatus = onLoss((isLost) => {
    lost = isLost;
    if (live) draw();
    else sayLoss(endpoint.base, isLost);
  });

  function onKeys(keys: string): void {
    if (asked === undefined) return;
    for (const key of keys) {
      const pressed = press(asked, typed, key);
      if ("typed" in pressed) typed = pressed.typed;
      else {
        reply(asked, pressed.reply);
        // What was pasted after an answer is none to the next ask, which nobody has seen yet.
        break;
      }
    }
    draw();
  }

  function reply(ask: Ask, given: Reply): void {
    // It is asked twice only where the answer was lost: what the run makes of one comes with its events.
    replied.add(askKey(ask));
    send(endpoint, ask, given).catch((error: unknown) => {
      if (error instanceof RunwireError && error.row.retry) replied.delete(askKey(ask));
      const why = messageOf(error);
      lines.push(cutLine(ask.label, { text: `! not answered: ${oneLine(why)}`, style: "red" }));
      draw();
    });
  }

  const stopKeys = prompts
    ? listenToKeys(stdin, { onKeys, onInterrupt: options.interrupt, onSuspend: screen.clear })
    : live
      ? whenSuspended({ give: screen.clear })
      : () => {};
  const timer = live ? setInterval(draw, wheelMs) : undefined;
  try {
    const source = sseSource({
      ...endpoint,
      run_id,
      backpressure: "lossless",
      ...(options.full ? { detail: "full" } : {}),
    });
    for await (const item of follow(source, { signal: options.signal, onStatus })) {
      const rendered = render(timeline, item, manner());
      timeline = rendered.timeline;
      lines.push(...rendered.lines);
      // On a terminal, all that comes within a turn of the wheel is drawn at once.
      if (!live || lines.length > 0) draw();
    }
    return timeline.end;
  } finally {
    clearInterval(timer);
    if (lines.length > 0) draw();
    screen.clear();
    stopKeys();
  }
}

async function send(endpoint: Endpoint, ask: Ask, reply: Reply): Promise<void> {
  const { run_id, id } = ask;
  const server = gateway(endpoint);
  const plan = ask.kind === "plan" && ask.plan_id !== null ? { plan_id: ask.plan_id } : {};
  try {
    if (reply.kind === "approval") await server.answerApproval(run_id, id, { decision: reply.decision });
    if (reply.kind === "plan") await server.approvePlan(run_id, { ...plan, approved: reply.approved });
    if (reply.kind === "question") await server.answerClarification(run_id, id, reply.answer);
  } catch (error) {
    // Somebody else was faster: the event says so.
    if (error instanceof RunwireError && error.code === "KAI-RUN-REQUEST-0002") return;
    throw error;
  }
}
