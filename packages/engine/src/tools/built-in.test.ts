import { expect, it } from "vitest";
import { builtInTools } from "./built-in.js";

const effectsOf = (tools: ReturnType<typeof builtInTools>) =>
  Object.fromEntries(tools.map(({ name, effect }) => [name, effect]));

it("there is a shell only where it was asked for", () => {
  const always = {
    "file.list": "read-only",
    "file.read": "read-only",
    "file.write": "destructive",
    "web.fetch": "read-only",
  };
  expect(effectsOf(builtInTools())).toEqual(always);
  expect(effectsOf(builtInTools({ shell: {} }))).toEqual({ ...always, shell: "destructive" });
});
