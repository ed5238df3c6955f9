// Servers of others that do a part of the same job. Each is started as its documents say, on a port that is free; one that
// cannot be had here says why, and the others are measured without it.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { http, type Poster, type Speech } from "./load.js";
import { type Server, start, startOwn, type Target } from "./process.js";

export interface Peer {
  readonly name: string;
  /** The scenarios that it can be put through, by how their names begin. */
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
  const noRedis =
    spawnSync("redis-server", ["--version"]).status === 0 ? undefined : "there is no redis-server";
  add(redisChannels, noRedis);
  add(redisStreams, noRedis);
  add(file, undefined);
  add(rows, undefined);
  return found;
}

const fanOuts = ["fan-out", "saturated"];

const send: Peer = {
  name: "C send()",
  can: fanOuts,
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
    const program = join(folder, "send");
    execFileSync("cc", ["-O2", "-o", program, resolve("packages/conformance/bench/send.c")]);
    return start(send.name, program, [], { folder });
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

/** The disk, and nothing else. */
const file: Peer = {
  name: "a file and fdatasync",
  can: ["append session"],
  start: () =>
    startOwn(file.name, "file-server.js", {
      session: () => ({
        begin: "",
        chunk: (events) => `${events.join("\n")}\n`,
        acked(text, before) {
          const lines = text.split("\n");
          const rest = lines.pop() ?? "";
          return { events: Number(lines.at(-1) ?? before), rest };
        },
      }),
    }),
};

const rows: Peer = {
  name: "rows and JSON",
  can: ["reconnect storm"],
  start: () => startOwn(rows.name, "rows-server.js"),
};

const resp: Speech = {
  ...http,
  subscribe: (_host, channel) => `SUBSCRIBE ${channel}\r\n`,
  request: (_method, _host, channel, body) => command("PUBLISH", channel, body),
  answer(text) {
    if (text.startsWith("-")) throw new Error(text);
    return text.endsWith("\r\n") ? text : undefined;
  },
};

function command(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

async function newChannel(): Promise<Target> {
  channels += 1;
  return { append: `c${channels}`, stream: `c${channels}` };
}

/** Keeps nothing. */
const redisChannels: Peer = {
  name: "Redis pub/sub",
  can: [...fanOuts, "latency"],
  start: () => startRedis(redisChannels.name, []),
};

const redisStreams: Peer = {
  name: "Redis XADD, appendfsync always",
  can: ["append session"],
  start: () => startRedis(redisStreams.name, ["--appendonly", "yes", "--appendfsync", "always"]),
};

async function startRedis(name: string, more: readonly string[]): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
  const port = await freePort();
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", '""', ...more];
  // What it says is for operators; its address is said for it.
  const says = `echo "listening on http://127.0.0.1:${port}"; exec redis-server ${options.join(" ")} >/dev/null`;
  const server = await start(name, "sh", ["-c", says], {
    folder,
    speech: resp,
    open: newChannel,
    session: (key) => ({
      begin: "",
      chunk: (events) => events.map((event) => command("XADD", key, "*", "e", event)).join(""),
      // One bulk string for each: `$15` and the id.
      acked(text, before) {
        const whole = text.lastIndexOf("\r\n") + 2;
        const ids = text.slice(0, whole).match(/\d+-\d+\r\n/g) ?? [];
        return { events: before + ids.length, rest: text.slice(whole) };
      },
    }),
  });
  await listening(port);
  return server;
}

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
      1 / 20,
    ),
};

async function startScript(
  name: string,
  text: string,
  open: (post: Poster) => Promise<Target>,
  share = 1,
): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-bench-"));
  // Beside the packages, so that they are found.
  const script = join(packages, `${name}.mjs`);
  writeFileSync(script, text);
  return start(name, process.execPath, [script, folder], { folder, open, share });
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
  const server = await start(name, "sh", ["-c", says], { folder, open });
  await listening(port);
  return { ...server, folder };
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const isUp = await new Promise<boolean>((tell) => {
      const socket = connect(port, "127.0.0.1", () => tell(true));
      socket.on("error", () => tell(false)).on("connect", () => socket.destroy());
    });
    if (isUp) return;
    await new Promise((wait) => setTimeout(wait, 20));
  }
  throw new Error(`nothing listens at ${port}`);
}

/** Some servers take no 0. */
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
