// What the parts of a task have come to, as whoever puts them together is told.

import { resultsHeading } from "../strategies/got.js";
import { pathHeading } from "../strategies/tot.js";
import type { Finding } from "./answers.js";
import { quote } from "./quote.js";
import { saysNothing } from "./subjects.js";
import { helperPrefix } from "./turn.js";

const findingCharsMax = 300;
const failed = "This part failed: ";

/** Of parts that looked into something. */
export function findingsTold(text: string): readonly Finding[] {
  const at = text.indexOf(resultsHeading);
  if (at < 0) return [];
  return text
    .slice(at + resultsHeading.length)
    .split(/^## /m)
    .flatMap((section): readonly Finding[] => {
      const [head = "", ...rest] = section.split("\n");
      const task = head.slice(head.indexOf(": ") + 2);
      if (!task.startsWith(helperPrefix)) return [];
      const subject = quote(task.slice(helperPrefix.length), 60);
      const told = quote(rest.join("\n").split("\n\nThe plan, to be kept to:")[0] ?? "", findingCharsMax);
      const isOk = !told.startsWith(failed) && !saysNothing(told);
      const named = told.startsWith(`${subject}:`) ? told : `${subject}: ${told}`;
      return [{ subject, text: named, ok: isOk }];
    });
}

/** The first step of the line of thought that was chosen; "" where none was. */
export function wayChosenIn(system: string): string {
  const at = system.indexOf(pathHeading);
  if (at < 0) return "";
  const lines = system
    .slice(at + pathHeading.length)
    .trimStart()
    .split("\n");
  return lines.find((line) => line.startsWith("- "))?.slice(2) ?? "";
}
