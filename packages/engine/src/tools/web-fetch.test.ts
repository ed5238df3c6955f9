import { createServer, type RequestListener } from "node:http";
import { createServer as createRawServer } from "node:net";
import { brotliCompressSync, createGzip, deflateSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, type TestContext, testContext } from "../testing/context.js";
import { loopback } from "../testing/loopback.js";
import { toolLimits } from "./limits.js";
import { webFetchTool } from "./web-fetch.js";

let context: TestContext;
const closing: (() => void)[] = [];
beforeEach(() => {
  context = testContext();
});
afterEach(() => {
  context.remove();
  for (const close of closing.splice(0)) close();
});

interface Site {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** Paths that were asked for. */
  readonly asked: string[];
}

async function site(answer: RequestListener): Promise<Site> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    answer(request, response);
  });
  const { port, close } = await loopback(server);
  closing.push(close);
  return { host: `127.0.0.1:${port}`, port, url: `http://127.0.0.1:${port}/`, asked };
}

const text: RequestListener = (_, response) => {
  response.setHeader("content-type", "text/plain").end("hello");
};
const fetchFrom = (host: string, url: string, rest: object = {}) =>
  outcomeOf(webFetchTool({ allowedHosts: [host] }), { url, ...rest }, context);

describe("a page", () => {
  it("comes as text, with where it is from and what it is", async () => {
    const { host, url } = await site((request, response) => {
      const seen = JSON.stringify({ ...request.headers, host: undefined });
      response.setHeader("content-type", 'text/html; charset="utf-8"');
      response.setHeader("set-cookie", "a=b").end(`<title>T</title><p>one<p>${seen}`);
    });
    const { output } = await fetchFrom(host, url);
    expect(output).toMatchObject({
      url,
      status: 200,
      content_type: "text/html",
      title: "T",
      truncated: false,
    });
    const [one, seen = ""] = String(output.text).split("\n");
    expect(one).toBe("one");
    expect(JSON.parse(seen)).toEqual({
      "user-agent": "runwire-web-fetch/1",
      accept: "text/html, text/*, application/json, application/xml;q=0.9, */*;q=0.1",
      "accept-encoding": "gzip, br",
      connection: expect.any(String),
    });
    expect((await fetchFrom(host, url)).output.text).not.toContain("cookie");
  });

  it.each([
    ["application/json", '{"a":"<b>"}'],
    ["application/ld+json; charset=utf-8", "{}"],
    ["text/markdown", "# <b>"],
    ["application/xml", "<a>b</a>"],
  ])("of %s comes as it is", async (type, body) => {
    const { host, url } = await site(
      (_, response) => void response.setHeader("content-type", type).end(body),
    );
    expect((await fetchFrom(host, url)).output.text).toBe(body);
  });

  it("is read in the letters it says it is in", async () => {
    const { host, url } = await site((request, response) => {
      const charset = request.url === "/latin" ? "iso-8859-1" : "klingon";
      const bytes = Buffer.from("ä", charset === "iso-8859-1" ? "latin1" : "utf8");
      response.setHeader("content-type", `text/plain; charset=${charset}`).end(bytes);
    });
    expect((await fetchFrom(host, `${url}latin`)).output.text).toBe("ä");
    expect((await fetchFrom(host, url)).output.text).toBe("ä");
  });

  it("that is not there comes with its status", async () => {
    const { host, url } = await site(
      (_, response) => void response.writeHead(404, { "content-type": "text/plain" }).end("no"),
    );
    expect((await fetchFrom(host, url)).output).toMatchObject({ status: 404, text: "no" });
  });

  it.each(["image/png", "application/octet-stream", "", "application/pdf", "video/text"])(
    "of type %j is not read",
    async (type) => {
      const { host, url } = await site((_, response) => {
        if (type !== "") response.setHeader("content-type", type);
        response.end("x");
      });
      expect(await fetchFrom(host, url)).toMatchObject({ kind: "not-text" });
    },
  );

  it.each([
    ["gzip", gzipSync("hello")],
    ["br", brotliCompressSync("hello")],
    ["deflate", deflateSync("hello")],
  ])("that is compressed with %s is unfolded", async (encoding, body) => {
    const { host, url } = await site((_, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-encoding": encoding }).end(body);
    });
    expect((await fetchFrom(host, url)).output.text).toBe("hello");
  });

  it("that is compressed in a broken, unknown or repeated way fails", async () => {
    const { host, url } = await site((request, response) => {
      const encoding = request.url === "/broken" ? "gzip" : request.url === "/twice" ? "gzip, gzip" : "zstd";
      response.writeHead(200, { "content-type": "text/plain", "content-encoding": encoding }).end("hello");
    });
    expect(await fetchFrom(host, `${url}broken`)).toMatchObject({ kind: "unreachable" });
    expect(await fetchFrom(host, `${url}twice`)).toMatchObject({ kind: "not-text" });
    expect(await fetchFrom(host, url)).toMatchObject({ kind: "not-text" });
  });
});

describe("a page without end", () => {
  it("is cut, and says so", async () => {
    const { host, url } = await site((_, response) => {
      response.setHeader("content-type", "text/plain");
      const more = (): void => {
        while (!response.destroyed && response.write("x".repeat(10_000)));
      };
      response.on("drain", more);
      more();
    });
    const { output } = await fetchFrom(host, url, { max_bytes: 1234 });
    expect(output).toMatchObject({ truncated: true, text: "x".repeat(1234) });
    expect(String((await fetchFrom(host, url)).output.text)).toHaveLength(toolLimits.fetchBytes);
  });

  it("is cut when a few compressed bytes unfold to it", async () => {
    let sent = 0;
    const { host, url } = await site((_, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" });
      const gzip = createGzip({ level: 9 });
      const zeros = Buffer.alloc(1_000_000);
      gzip.on("data", (chunk: Buffer) => {
        sent += chunk.length;
        if (!response.destroyed) response.write(chunk);
      });
      response.on("close", () => gzip.destroy());
      const more = (): void => void gzip.write(zeros, () => !response.destroyed && more());
      more();
    });
    const before = process.memoryUsage().rss;
    const { output } = await fetchFrom(host, url);
    expect(output).toMatchObject({ truncated: true });
    expect(String(output.text)).toHaveLength(toolLimits.fetchBytes);
    expect(sent).toBeGreaterThan(0);
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
  });

  it("that comes too slowly is given up, wherever it hangs", async () => {
    const { host, url } = await site((request, response) => {
      if (request.url === "/silent") return;
      response.setHeader("content-type", "text/plain").write("x");
      if (request.url === "/dribble") {
        const timer = setInterval(() => response.write("x"), 10);
        response.on("close", () => clearInterval(timer));
      }
    });
    const tool = webFetchTool({ allowedHosts: [host], fetchMs: 200 });
    for (const path of ["silent", "begun", "dribble"]) {
      expect(await outcomeOf(tool, { url: url + path }, context)).toMatchObject({ kind: "timeout" });
    }
    const hanging = webFetchTool({ resolve: () => new Promise(() => {}), fetchMs: 100 });
    expect(await outcomeOf(hanging, { url: "http://example.com/" }, context)).toMatchObject({
      kind: "timeout",
    });
  });

  it("is left when the call is called off", async () => {
    const { host, url } = await site(() => context.abort());
    await expect(fetchFrom(host, url)).rejects.toThrow("aborted");
  });

  it("that breaks off fails", async () => {
    const { host, url } = await site((request, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": 100 }).write("x");
      setImmediate(() => request.socket.destroy());
    });
    expect(await fetchFrom(host, url)).toMatchObject({ kind: "unreachable" });
  });
});

it("a page that changes to another protocol fails", async () => {
  const server = createRawServer((socket) => {
    // It is left without a word.
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"));
  });
  const { port, url, close } = await loopback(server);
  closing.push(close);
  const outcome = await fetchFrom(`127.0.0.1:${port}`, `${url}/`);
  expect(outcome).toMatchObject({ kind: "unreachable" });
});

describe("a redirection", () => {
  const to =
    (location: string, status = 302): RequestListener =>
    (_, response) =>
      void response.writeHead(status, { location }).end();

  it("is followed, five times and no more", async () => {
    const { host, url, asked } = await site((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) text(request, response);
      else to(`/${left - 1}`, [301, 302, 303, 307, 308][left % 5])(request, response);
    });
    expect((await fetchFrom(host, `${url}5`)).output).toMatchObject({ text: "hello", url: `${url}0` });
    asked.length = 0;
    expect(await fetchFrom(host, `${url}6`)).toMatchObject({ kind: "refused" });
    expect(asked).toHaveLength(6);
  });

  it("to what may not be fetched is not followed", async () => {
    const inner = await site(text);
    const targets = [
      inner.url,
      `//127.0.0.1:${inner.port}/`,
      `http://0x7f.1:${inner.port}/`,
      `http://2130706433:${inner.port}/`,
      `http://[::ffff:127.0.0.1]:${inner.port}/`,
      `http://localhost:${inner.port}/`,
      `http://0.0.0.0:${inner.port}/`,
      `http://user:pass@${inner.host}/`,
      "http://169.254.169.254/latest/meta-data/",
      "file:///etc/hostname",
      "data:text/plain,x",
      "ftp://example.com/",
      "javascript:1",
    ];
    for (const target of targets) {
      const { host, url } = await site(to(target));
      expect([target, (await fetchFrom(host, url)).kind]).toEqual([target, "refused"]);
    }
    expect(inner.asked).toEqual([]);
  });
});

describe("a name", () => {
  it("that now means something else is not asked for again: the connection goes where the check looked", async () => {
    const { port, asked } = await site(text);
    const answers = [["127.0.0.1"], ["127.0.0.2"]];
    let count = 0;
    const resolve = async () => answers[count++] ?? [];
    const url = `http://rebinding.example.com:${port}/`;
    const tool = webFetchTool({ allowedHosts: [`rebinding.example.com:${port}`], resolve });
    expect((await outcomeOf(tool, { url }, context)).output).toMatchObject({ text: "hello" });
    expect(count).toBe(1);
    // The second answer is taken for the next call, and nothing listens there.
    expect(await outcomeOf(tool, { url }, context)).toMatchObject({ kind: "unreachable" });
    expect(asked).toHaveLength(1);
  });

  it("that a redirection leads to is checked as the first one is", async () => {
    const inner = await site(text);
    const { host, url } = await site((_, response) => {
      response.writeHead(302, { location: `http://inner.example.com:${inner.port}/` }).end();
    });
    const tool = webFetchTool({ allowedHosts: [host], resolve: async () => ["127.0.0.1"] });
    expect(await outcomeOf(tool, { url }, context)).toMatchObject({ kind: "refused" });
    expect(inner.asked).toEqual([]);
  });

  it("is refused when any of its addresses is private, or when it has none", async () => {
    const kindFor = async (addresses: readonly string[]) =>
      (
        await outcomeOf(
          webFetchTool({ resolve: async () => addresses }),
          { url: "http://example.com" },
          context,
        )
      ).kind;
    expect(await kindFor(["8.8.8.8", "10.0.0.1"])).toBe("refused");
    expect(await kindFor(["2606:4700::1", "::1"])).toBe("refused");
    expect(await kindFor(["fe80::1%eth0"])).toBe("refused");
    expect(await kindFor(["nonsense"])).toBe("refused");
    expect(await kindFor([])).toBe("unreachable");
  });

  it("on the allow list is allowed on its own port only, where it names one", async () => {
    const { port, host, url } = await site(text);
    expect((await fetchFrom("127.0.0.1", url)).kind).toBeNull();
    expect((await fetchFrom(host, url)).kind).toBeNull();
    expect((await fetchFrom(`127.0.0.1:${port + 1}`, url)).kind).toBe("refused");
    expect((await fetchFrom("127.0.0.2", url)).kind).toBe("refused");
  });
});

describe("a URL", () => {
  it.each([
    "ftp://example.com",
    "file:///etc/hostname",
    "data:text/plain,x",
    "gopher://example.com:70/_x",
    "about:blank",
  ])("of another kind is refused: %s", async (url) =>
    expect(await fetchFrom("", url)).toMatchObject({ kind: "refused" }),
  );

  it("with a password is refused, and one that is none is invalid", async () => {
    expect(await fetchFrom("example.com", "http://user:pass@example.com/")).toMatchObject({
      kind: "refused",
    });
    expect(await fetchFrom("example.com", "http://user@example.com/")).toMatchObject({ kind: "refused" });
    expect(await fetchFrom("", "not a url")).toMatchObject({ kind: "invalid-input" });
    expect(await fetchFrom("", "")).toMatchObject({ kind: "invalid-input" });
  });
});
