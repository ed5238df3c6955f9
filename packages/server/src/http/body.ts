// Request bodies: bounded, strict UTF-8, JSON.

import type { IncomingMessage } from "node:http";
import { isObject, type JsonLimits, lineSplitter, RunwireError, unfitJson } from "@runwire/protocol";
import { gatheredBytes } from "./gathered.js";

const bodyMs = 30_000;

/** The whole body as text. Throws 413 when it is larger than allowed, 400 when it is not UTF-8, 408 when it dawdles. */
export async function readText(req: IncomingMessage, bytesMax: number): Promise<string> {
  // Most bodies come with their head, and are here by the time anybody asks for them: no listener, no timer.
  if (req.httpVersionMajor === 1 && req.complete) {
    const whole = req.read() as Buffer | null;
    if (whole === null) return "";
    if (whole.length > bytesMax) throw tooLarge(bytesMax);
    return decodeUtf8(whole);
  }
  return readSlowly(req, bytesMax);
}

function readSlowly(req: IncomingMessage, bytesMax: number): Promise<string> {
  // Listeners, not an async iterator, which costs more than the rest.
  return new Promise((resolve, reject) => {
    checkWhole(req);
    const body = gatheredBytes();
    let bytes = 0;
    const timer = setTimeout(() => reject(new RunwireError("KAI-REQUEST-TIME-0001")), bodyMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      // What still comes is read and thrown away: a client that is cut while it sends never reads the answer.
      req.resume();
      reject(error);
    };
    if (Number(req.headers["content-length"] ?? 0) > bytesMax) {
      fail(tooLarge(bytesMax));
      return;
    }
    req.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) fail(tooLarge(bytesMax));
      else body.add(chunk);
    });
    req.once("error", (cause) => fail(new RunwireError("KAI-STREAM-CONN-0001", undefined, { cause })));
    req.once("end", () => {
      clearTimeout(timer);
      try {
        checkWhole(req);
        resolve(decodeUtf8(body.take()));
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** Over HTTP/2 a body that is cut off ends like any other, or, where nobody has listened yet, not at all. */
function checkWhole(req: IncomingMessage): void {
  if (req.aborted) throw new RunwireError("KAI-STREAM-CONN-0001");
}

const strict = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(bytes: Buffer): string {
  try {
    return strict.decode(bytes);
  } catch (cause) {
    throw new RunwireError("KAI-REQUEST-BODY-0001", "it is not valid UTF-8", { cause });
  }
}

function tooLarge(bytesMax: number): RunwireError {
  return new RunwireError("KAI-REQUEST-SIZE-0001", `a body may have ${bytesMax} bytes`);
}

export interface BodyLimits extends JsonLimits {
  readonly bodyBytesMax: number;
}

/** A JSON object; `{}` for an empty body. */
export async function readObject(
  req: IncomingMessage,
  bounds: BodyLimits,
): Promise<{ [member: string]: unknown }> {
  checkType(req, []);
  const text = await readText(req, bounds.bodyBytesMax);
  if (text.trim() === "") return {};
  const value = parseJson(text);
  if (!isObject(value)) throw new RunwireError("KAI-REQUEST-BODY-0001", "it must be a JSON object");
  checkFit(value, bounds);
  return value;
}

/** Throws 422 where it is deeper or has more members than anybody takes, or names what no order should. */
export function checkFit(value: object, bounds: JsonLimits): void {
  const unfit = unfitJson(value, bounds) ?? pollution(value);
  if (unfit !== undefined) throw new RunwireError("KAI-REQUEST-BODY-0002", `the body ${unfit}`);
}

/** Throws 415 unless the body says it is JSON, says nothing, or is one of the others; and where it is compressed. */
export function checkType({ headers }: IncomingMessage, others: readonly string[]): string {
  const coding = headers["content-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "identity")
    throw new RunwireError("KAI-REQUEST-TYPE-0001", `content-encoding ${coding.slice(0, 60)}; send it plain`);
  const given = headers["content-type"];
  if (given === undefined || given === "application/json") return "application/json";
  const type = given.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  // What curl sends unless told otherwise is taken for JSON too.
  if (["application/json", "application/x-www-form-urlencoded", ...others].includes(type)) return type;
  throw new RunwireError("KAI-REQUEST-TYPE-0001", type.slice(0, 60));
}

/** In payloads such members are data like any other; whoever puts them into an order means harm. */
function pollution(value: unknown): string | undefined {
  const looking: unknown[] = [value];
  while (looking.length > 0) {
    const one = looking.pop();
    if (typeof one !== "object" || one === null) continue;
    if (Object.hasOwn(one, "__proto__")) return "has a member `__proto__`";
    const { constructor: made } = one as { constructor?: unknown };
    if (Object.hasOwn(one, "constructor") && isObject(made) && Object.hasOwn(made, "prototype"))
      return "has a member `constructor.prototype`";
    for (const inner of Object.values(one)) if (typeof inner === "object") looking.push(inner);
  }
  return undefined;
}

/** JSON values of a batch, each with how an error names it. */
export function batchValues(
  text: string,
  isArray: boolean,
  lineBytesMax: number,
): readonly { readonly where: string; readonly value: unknown }[] {
  if (!isArray) {
    const splitter = lineSplitter(lineBytesMax);
    return [...splitter.push(text), ...splitter.end()].map((line, i) => {
      const where = `line ${i + 1}`;
      return { where, value: parseLine(line, where) };
    });
  }
  if (text.trim() === "")
    throw new RunwireError("KAI-REQUEST-BODY-0001", "it is empty; send a JSON array of events");
  const value = parseJson(text);
  if (!Array.isArray(value))
    throw new RunwireError("KAI-REQUEST-BODY-0001", "it must be a JSON array of events");
  return value.map((item: unknown, i) => ({ where: `event ${i + 1}`, value: item }));
}

export function parseLine(line: string, where: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    // Not the parser's own words: they quote the text, and an error holds no payload.
    throw new RunwireError("KAI-STREAM-PROTO-0001", `${where}: not JSON`, { cause });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RunwireError("KAI-REQUEST-BODY-0001", "it is not JSON", { cause });
  }
}
