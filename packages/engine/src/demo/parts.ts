// What the parts of a task have come to, as whoever puts them together is told.

import { planHeading } from "../plan-steps.js";
import { failedPrefix, resultsHeading } from "../strategies/got.js";
import { pathHeading } from "../strategies/tot.js";
import { type Finding, findingCharsMax, withSubject } from "./answers.js";
import { quote } from "./quote.js";
import { saysNothing } from "./subjects.js";
import { helpedWith, helperPrefix } from "./turn.js";

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
      const subject = helpedWith(task);
      const told = quote(rest.join("\n").split(`\n\n${planHeading}`)[0] ?? "", findingCharsMax);
      const isOk = !told.startsWith(failedPrefix) && !saysNothing(told);
      return [{ subject, text: withSubject(subject, told), ok: isOk }];
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
