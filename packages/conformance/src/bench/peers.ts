// Servers of others that do a part of the same job. Each is started as its documents say, on a port that is free; one that
// cannot be had here says why, and the others are measured without it.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Poster } from "./load.js";
import { type Server, start, type Target } from "./process.js";

export interface Peer {
  readonly name: string;
  /** The scenarios that it can be put through, by a part of their names. */
  readonly can: readonly string[];
  start(): Promise<Server>;
}

/** Where packages are put that are only measured against. */
const packages = resolve("node_modules/.cache/runwire-bench");
const npmPackages = ["better-sse@0.16.1", "@durable-streams/server@0.3.7"];

/** Those that can be started here; the others are told why not. */
export function peers(report: (line: string) => void): readonly Peer[] {
  const found: Peer[] = [];
  const add = (peer: Peer, why: string | undefined): void => {
    if (why === undefined) found.push(peer);
    else report(`${peer.name} is not measured: ${why}`);
  };
  add(send, spawnSync("cc", ["--version"]).status === 0 ? undefined : "there is no C compiler");
  add(nchan, existsSync(nchanModule) ? undefined : `there is no ${nchanModule} (libnginx-mod-nchan)`);
  add(sendfile, spawnSync("nginx", ["-v"]).status === 0 ? undefined : "there is no nginx");
  const missing = installed();
  add(betterSse, missing);
  add(durableStreams, missing);
  return found;
}

const fanOuts = ["fan-out"];

const send: Peer = {
  name: "C send()",
  can: fanOuts,
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
    const program = join(folder, "send");
    execFileSync("cc", ["-O2", "-o", program, resolve("packages/conformance/bench/send.c")]);
    return start(send.name, program, [], folder);
  },
};

const nchanModule = "/usr/lib/nginx/modules/ngx_nchan_module.so";

const nchan: Peer = {
  name: "nchan",
  can: [...fanOuts, "latency", "idle"],
  start: () =>
    startNginx(
      nchan.name,
      `load_module ${nchanModule};`,
      `location ~ /pub/(\\w+)$ { nchan_publisher; nchan_channel_id $1; }
       location ~ /sub/(\\w+)$ { nchan_subscriber; nchan_channel_id $1; nchan_message_buffer_length 1000; }`,
      async () => {
        channels += 1;
        return { append: `/pub/c${channels}`, stream: `/sub/c${channels}` };
      },
    ),
};

let channels = 0;

const sendfile: Peer = {
  name: "nginx sendfile",
  can: ["replay"],
  async start() {
    const server = await startNginx(
      sendfile.name,
      "",
      "location / { sendfile on; tcp_nopush on; keepalive_timeout 0; }",
      async () => ({
        append: "",
        stream: "/bytes",
      }),
    );
    writeFileSync(join(server.folder, "bytes"), Buffer.alloc(32 * 1024 * 1024, "x"));
    return server;
  },
};

const betterSse: Peer = {
  name: "better-sse",
  can: fanOuts,
  start: () =>
    startScript(
      betterSse.name,
      `import { createServer } from "node:http";
       import { createChannel, createSession } from "better-sse";
       const channel = createChannel();
       const server = createServer(async (req, res) => {
         if (req.method === "GET") { channel.register(await createSession(req, res)); return; }
         const chunks = [];
         for await (const chunk of req) chunks.push(chunk);
         channel.broadcast(JSON.parse(Buffer.concat(chunks).toString()));
         res.writeHead(200, { "Content-Length": 2 }).end("{}");
       });
       server.listen(0, "127.0.0.1", () => console.log("listening on http://127.0.0.1:" + server.address().port));`,
      async () => ({ append: "/append", stream: "/stream" }),
    ),
};

const durableStreams: Peer = {
  name: "durable-streams",
  can: [...fanOuts, "single-event"],
  start: () =>
    startScript(
      durableStreams.name,
      `import { DurableStreamTestServer } from "@durable-streams/server";
       const server = new DurableStreamTestServer({ port: 0, host: "127.0.0.1", dataDir: process.argv[2] });
       const url = await server.start();
       console.log("listening on " + url);`,
      async (post) => {
        channels += 1;
        const path = `/s${channels}`;
        await post.put(path);
        return { append: path, stream: `${path}?offset=-1&live=sse` };
      },
    ),
};

async function startScript(
  name: string,
  script: string,
  open: (post: Poster) => Promise<Target>,
): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
  // Beside the packages, so that they are found.
  const file = join(packages, `${name}.mjs`);
  writeFileSync(file, script);
  return { ...(await start(name, process.execPath, [file, folder], folder)), open };
}

async function startNginx(
  name: string,
  modules: string,
  locations: string,
  open: () => Promise<Target>,
): Promise<Server & { readonly folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
  const port = await freePort();
  const file = join(folder, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  for (const one of temporary) mkdirSync(join(folder, one));
  writeFileSync(
    file,
    `daemon off; worker_processes 1; ${process.getuid?.() === 0 ? "user root;" : ""} pid ${folder}/pid; error_log stderr crit; ${modules}
     worker_rlimit_nofile 20000;
     events { worker_connections 15000; }
     http {
       access_log off; keepalive_requests 1000000; default_type application/json; root ${folder};
       ${temporary.map((one) => `${one}_temp_path ${folder}/${one};`).join(" ")}
       server { listen 127.0.0.1:${port}; ${locations} }
     }`,
  );
  // It says nothing when it listens; the shell says it for it.
  const says = `echo "listening on http://127.0.0.1:${port}"; exec nginx -e stderr -p ${folder} -c ${file}`;
  const server = await start(name, "sh", ["-c", says], folder);
  await answering(server.url);
  return { ...server, open, folder };
}

async function answering(url: URL): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isUp) return;
    await new Promise((wait) => setTimeout(wait, 20));
  }
  throw new Error(`nothing answers at ${url}`);
}

/** nginx takes no 0. */
function freePort(): Promise<number> {
  return new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number };
      server.close(() => found(port));
    });
  });
}

function installed(): string | undefined {
  if (npmPackages.every((name) => existsSync(join(packages, "node_modules", name.replace(/@[^@]+$/, "")))))
    return undefined;
  mkdirSync(packages, { recursive: true });
  writeFileSync(join(packages, "package.json"), '{"private":true}');
  const { status, stderr } = spawnSync("npm", ["install", "--no-audit", "--no-fund", ...npmPackages], {
    cwd: packages,
    encoding: "utf8",
  });
  if (status === 0) return undefined;
  rmSync(packages, { recursive: true, force: true });
  return `npm install fails (${stderr.trim().split("\n").at(-1)})`;
}
