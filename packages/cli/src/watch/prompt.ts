// A prompt at the bottom of the timeline: (what was typed, key) → (what is typed now, or an answer).

import type { ApprovalAnswer } from "@runwire/client";
import type { Line } from "./line.js";
import { cutLine, gutterOf } from "./lines.js";
import type { Ask } from "./timeline.js";

export type Reply =
  | { readonly kind: "approval"; readonly decision: ApprovalAnswer["decision"] }
  | { readonly kind: "plan"; readonly approved: boolean }
  | { readonly kind: "question"; readonly answer: string }
  /** Somebody else may answer. */
  | { readonly kind: "later" };

export type Pressed = { readonly typed: string } | { readonly reply: Reply };

const escapeKey = "\u001b";
const decisions = { o: "once", s: "session", a: "always", d: "deny" } as const;

/** `key` is one character, as the terminal sends it. */
export function press(ask: Ask, typed: string, key: string): Pressed {
  if (key === escapeKey) return { reply: { kind: "later" } };
  const letter = key.toLowerCase();
  switch (ask.kind) {
    case "approval":
      if (Object.hasOwn(decisions, letter)) {
        return { reply: { kind: "approval", decision: decisions[letter as keyof typeof decisions] } };
      }
      return { typed: "" };
    case "plan":
      if (letter === "y" || letter === "n") return { reply: { kind: "plan", approved: letter === "y" } };
      return { typed: "" };
    case "question":
      return typeAnswer(ask.choices, typed, key);
  }
}

function typeAnswer(choices: readonly string[], typed: string, key: string): Pressed {
  if (key === "\r" || key === "\n") {
    const text = typed.trim();
    const choice = /^[0-9]{1,2}$/.test(text) ? choices[Number(text) - 1] : undefined;
    return text === "" ? { typed: "" } : { reply: { kind: "question", answer: choice ?? text } };
  }
  if (key === "\u007f" || key === "\b") return { typed: [...typed].slice(0, -1).join("") };
  // Ctrl-U
  if (key === "\u0015") return { typed: "" };
  return { typed: /\p{Cc}/u.test(key) ? typed : typed + key };
}

export function promptLine(ask: Ask, typed: string): Line {
  const about = { text: "about" in ask ? `${ask.about}  ` : "", style: "bold" } as const;
  const mark = { text: "? ", style: "yellow" } as const;
  switch (ask.kind) {
    case "approval":
      return cutLine(
        ask.label,
        mark,
        { text: "(o)nce (s)ession (a)lways (d)eny", style: "yellow" },
        {
          text: `  ${about.text}› `,
        },
      );
    case "plan":
      return cutLine(
        ask.label,
        mark,
        { text: "go on with this plan? " },
        { text: "(y)es (n)o", style: "yellow" },
        {
          text: " › ",
        },
      );
    case "question": {
      const how = ask.choices.length === 0 ? "your answer" : `1–${ask.choices.length}, or your own words`;
      const spans = [mark, { text: `${how} › `, style: "yellow" } as const, { text: typed }];
      return { gutter: gutterOf(ask.label), spans, fit: "tail", hang: 0 };
    }
  }
}
