// A run that gets an event now and then, and whose reader knows how old each is. Both are on a thread of their own: what
// they measure is the server, and not how busy those are who put it under load.

import { parentPort, workerData } from "node:worker_threads";
import { http, openReader, poster } from "./load.js";
import { stamped, stampsIn } from "./scenarios/fan-out.js";

const { base, append, stream } = workerData as Record<"base" | "append" | "stream", string>;
const hertz = 50;
const url = new URL(base);
const post = poster(url, http, 1);
let samples: number[] = [];
let over = false;

await openReader(url, http.subscribe(url.host, stream), {
  hear(chunk) {
    for (const sent of stampsIn(chunk)) samples.push(performance.now() - sent);
  },
});

async function measure(): Promise<void> {
  samples = [];
  over = false;
  while (!over) {
    await post.post(append, `[${stamped()}]`);
    await new Promise((resolve) => setTimeout(resolve, 1000 / hertz));
  }
  parentPort?.postMessage(samples);
}

parentPort?.on("message", (asked: "begin" | "end") => {
  if (asked === "begin") void measure();
  else over = true;
});
parentPort?.postMessage("ready");
