// What a connection costs that does nothing.

import { connect, type Socket } from "node:net";
import { inParallel, type Reader } from "../load.js";
import { medianOf } from "../table.js";
import type { Scenario } from "./scenario.js";

/** What a connection costs that says nothing. */
export function idleReaders(readers: number): Scenario {
  return {
    name: `${readers} idle SSE readers`,
    measures: "memory each",
    async run(server) {
      const post = server.poster(1);
      const { stream } = await server.open(post);
      const opened: Reader[] = [];
      const open = async (): Promise<unknown> => opened.push(await server.reader(stream));
      await inParallel(500, 50, open);
      const before = server.rssBytes();
      await inParallel(readers, 50, open);
      const grown = server.rssBytes() - before;
      for (const reader of opened) reader.close();
      post.close();
      return { KB: grown / 1024 / readers };
    },
  };
}

/** What readers that stopped reading cost while a run goes on: the same load, with them and without. */
export function stalledReaders(readers: number, megabytes: number): Scenario {
  return {
    name: `${readers} stalled readers while ${megabytes} MB are appended`,
    measures: "memory for each",
    async run(server) {
      const post = server.poster(1);
      const grow = async (stalled: number): Promise<number> => {
        const { append, stream } = await server.open(post);
        const sockets = await Promise.all(
          Array.from({ length: stalled }, () => stalledSocket(server.url, stream)),
        );
        const before = server.rssBytes();
        const text = "t".repeat(10_000);
        const delta = JSON.stringify({ type: "text.delta", payload: { text } });
        const body = `[${Array.from({ length: 10 }, () => delta).join(",")}]`;
        for (let i = 0; i < megabytes * 10; i++) await post.post(append, body);
        const grown = server.rssBytes() - before;
        for (const socket of sockets) socket.destroy();
        return grown / 1e6;
      };
      // The first growth is the heap's own. After that it comes and goes by more than what is looked for: so, pairs.
      await grow(0);
      const differences: number[] = [];
      for (let i = 0; i < pairs; i++) differences.push(-(await grow(0)) + (await grow(readers)));
      post.close();
      return { MB: Math.max(0, medianOf(differences)) / readers };
    },
  };
}

const pairs = 5;

async function stalledSocket(url: URL, path: string): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  return socket;
}
