// Children: made by an append or a request, written through any run above, mirrored upwards.

import { limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  codeOf,
  createRun,
  eventsOf,
  lifecycle,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { freshChildId } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

describe("children", () => {
  it("are made by an appended child.spawn, and written through any run above [RW-APPEND-6]", async () => {
    const root = await createRun(server.url);
    const [child, grandchild] = [freshChildId(), freshChildId()];
    await append(
      server.url,
      root,
      say("child.spawn", { child_id: child, prompt: "dig", tools_allowed: ["web"] }),
    );
    await append(server.url, root, say("child.spawn", { child_id: grandchild, prompt: "deeper" }, child));
    await append(server.url, root, say("title", { title: "from above" }, grandchild));
    await append(server.url, child, say("title", { title: "from the middle" }, grandchild));
    await append(server.url, grandchild, say("title", { title: "from itself" }));
    const own = await allEvents(server.url, grandchild);
    expect(own.map(({ type, child_id }) => [type, child_id])).toEqual([
      ["run.lifecycle", null],
      ["turn.submitted", null],
      ["title", null],
      ["title", null],
      ["title", null],
    ]);
    expect(own[1]?.payload).toMatchObject({ messages: [{ role: "user", content: "deeper" }] });
    for (const above of [child, root]) {
      const mirrored = (await allEvents(server.url, above)).filter((e) => e.child_id === grandchild);
      expect(mirrored.map(({ id, payload }) => [id, payload])).toEqual(
        own.map(({ id, payload }) => [id, payload]),
      );
    }
    // Not through a run beside or below it, and not once it has ended.
    const other = await createRun(server.url);
    expect((await tryAppend(server.url, other, [text("x", child)])).status).toBe(422);
    expect((await tryAppend(server.url, grandchild, [text("x", child)])).status).toBe(422);
    await append(server.url, root, lifecycle("done", grandchild));
    const late = await tryAppend(server.url, root, [text("x", grandchild)]);
    expect([late.status, codeOf(late)]).toEqual([422, "KAI-RUN-CHILD-0001"]);
  });

  it("are made by a request, as an outside producer spawns them", async () => {
    const root = await createRun(server.url);
    const made = await call(server.url, "POST", runPath(root, "children"), {
      prompt: "help",
      tools_allowed: ["web"],
    });
    expect(made).toMatchObject({ status: 201, body: { parent_id: root, state: "running" } });
    const child = made.body.run_id as string;
    const [spawn] = await eventsOf(server.url, root, "child.spawn");
    expect(spawn?.payload).toEqual({ child_id: child, prompt: "help", tools_allowed: ["web"] });
    const listed = await call(server.url, "GET", runPath(root, "children"));
    expect(listed.body.children).toMatchObject([
      { run_id: child, parent_id: root, root_id: root, state: "running" },
    ]);
    const twice = await call(server.url, "POST", runPath(root, "children"), { prompt: "x", child_id: child });
    expect([twice.status, codeOf(twice)]).toEqual([409, "KAI-RUN-CHILD-0003"]);
    expect((await call(server.url, "POST", runPath(root, "children"), {})).status).toBe(422);
    expect((await call(server.url, "POST", runPath("run_unknown", "children"), { prompt: "x" })).status).toBe(
      404,
    );
  });

  it("are listed page by page, and a run's record names the first thousand", async () => {
    const root = await createRun(server.url);
    const made = Array.from({ length: limits.childrenShownMax + 1 }, freshChildId).sort();
    const drafts = made.flatMap((child_id) => [
      say("child.spawn", { child_id }),
      lifecycle("done", child_id),
    ]);
    await append(server.url, root, ...drafts);
    const { body: run } = await call(server.url, "GET", `/v1/agent/runs/${root}`);
    expect(run.children).toEqual(made.slice(0, -1));
    const pages: unknown[][] = [];
    let next: unknown = null;
    do {
      const at = next === null ? "children" : `children?cursor=${next}`;
      const { body } = await call(server.url, "GET", runPath(root, at));
      pages.push((body.children as { run_id: string }[]).map(({ run_id }) => run_id));
      next = body.next;
    } while (next !== null);
    expect(pages.map(({ length }) => length)).toEqual([200, 200, 200, 200, 200, 1]);
    expect(pages.flat()).toEqual(made);
    const rest = await call(server.url, "GET", runPath(root, `children?cursor=${run.children_next}`));
    expect(rest.body).toMatchObject({ children: [{ run_id: made.at(-1), state: "done" }], next: null });
    const few = await call(server.url, "GET", `/v1/agent/runs/${made[0]}`);
    expect(few.body).toMatchObject({ children: [], children_next: null });
    const wrong = await call(server.url, "GET", runPath(root, "children?limit=201"));
    expect([wrong.status, codeOf(wrong)]).toEqual([400, "KAI-STREAM-PARAM-0001"]);
  });

  it("are eight levels deep at most", async () => {
    let at = await createRun(server.url);
    for (let level = 1; level <= limits.childDepthMax; level++) {
      const made = await call(server.url, "POST", runPath(at, "children"), { prompt: `level ${level}` });
      expect(made.status).toBe(201);
      at = made.body.run_id as string;
    }
    const tooDeep = await call(server.url, "POST", runPath(at, "children"), { prompt: "too deep" });
    expect([tooDeep.status, codeOf(tooDeep)]).toEqual([409, "KAI-RUN-CHILD-0003"]);
  });
});
