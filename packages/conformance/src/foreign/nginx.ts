// nginx as it is installed, in front of a server: with its buffering and HTTP/1.0 to the back, as its defaults are.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, watch, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tool } from "../tools.js";

export const nginx = tool("nginx");

export interface Front {
  readonly url: string;
  /** Cuts every connection of its clients, as a network does that changes. */
  cutAll(): void;
  close(): Promise<void>;
}

/** It listens on a file, and whoever comes to the port is led there: so the port can be any free one. */
export async function startNginx(backend: string): Promise<Front> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-nginx-"));
  const door = join(folder, "door");
  for (const name of ["body", "proxy", "fastcgi", "uwsgi", "scgi"]) mkdirSync(join(folder, name));
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log stderr error; worker_processes 1;
     events {}
     http {
       access_log off;
       ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name.replace("client_", "")};`).join(" ")}
       server { listen unix:${door}; location / { proxy_pass ${backend}; } }
     }`,
  );
  const opened = new Promise<void>((resolve) => {
    const watching = watch(folder, (_, name) => {
      if (name !== "door") return;
      watching.close();
      resolve();
    });
  });
  const running = spawn(nginx.program, ["-e", "stderr", "-p", folder, "-c", file], { stdio: "ignore" });
  const exited = once(running, "exit");
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    const inside = connect(door);
    clients.add(client);
    for (const socket of [client, inside]) {
      socket.on("error", () => {});
      socket.once("close", () => {
        clients.delete(client);
        client.destroy();
        inside.destroy();
      });
    }
    client.pipe(inside).pipe(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await Promise.race([opened, exited.then(() => Promise.reject(new Error("nginx does not start")))]);
  const cutAll = (): void => {
    for (const client of [...clients]) client.resetAndDestroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutAll,
    async close() {
      server.close();
      cutAll();
      running.kill("SIGTERM");
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
