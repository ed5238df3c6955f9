import { describe, expect, it } from "vitest";
import { layOut } from "./line.js";
import { press, promptLine } from "./prompt.js";
import type { Ask } from "./timeline.js";

const from = { run_id: "run_1", label: "", id: "x" };
const approval: Ask = { ...from, kind: "approval", about: "shell ls" };
const plan: Ask = { ...from, kind: "plan", plan_id: "p1" };
const question: Ask = { ...from, kind: "question", about: "Size?", choices: ["small", "any"] };

/** What comes of keys pressed one after the other, up to the first answer. */
function pressed(ask: Ask, keys: string) {
  let typed = "";
  for (const key of keys) {
    const next = press(ask, typed, key);
    if ("reply" in next) return next.reply;
    typed = next.typed;
  }
  return typed;
}

describe("a prompt", () => {
  it.each([
    ["o", "once"],
    ["S", "session"],
    ["a", "always"],
    ["xyz d", "deny"],
  ])("for a tool takes %j for %s", (keys, decision) => {
    expect(pressed(approval, keys)).toEqual({ kind: "approval", decision });
  });

  it("for a tool takes no other key, least of all Enter, for an answer", () => {
    expect(pressed(approval, "\r\n y1\u0004constructor".replace(/[osad]/g, ""))).toBe("");
  });

  it("for a plan takes y and n", () => {
    expect(pressed(plan, "\ry")).toEqual({ kind: "plan", approved: true });
    expect(pressed(plan, "N")).toEqual({ kind: "plan", approved: false });
  });

  it.each([
    ["2\r", "any"],
    ["3\r", "3"],
    ["0\r", "0"],
    ["\r  mid-size \r", "mid-size"],
    ["x\u0015größe📈\u007f\r", "größe"],
  ])("for a question takes %j for %j", (keys, answer) => {
    expect(pressed(question, keys)).toEqual({ kind: "question", answer });
  });

  it("is left to somebody else with Escape", () => {
    for (const ask of [approval, plan, question]) expect(pressed(ask, "\u001b")).toEqual({ kind: "later" });
  });

  it("shows its keys even where there is little room, and the end of what is typed", () => {
    const look = { columns: 36, colour: false };
    expect(layOut(promptLine(approval, ""), look)).toEqual(["? (o)nce (s)ession (a)lways (d)eny…"]);
    expect(layOut(promptLine(question, "a very long answer"), look)[0]).toMatch(
      /^\? 1–2, or your own words › ….*swer$/,
    );
  });
});
