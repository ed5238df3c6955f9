import { describe, expect, it } from "vitest";
import { keepalive, sseCursor, sseFrame, sseRetry } from "./sse.js";

describe("a server-sent event", () => {
  it("is an id line, a data line and a blank line [RW-SSE-1]", () => {
    expect(sseFrame({ id: "7", data: '{"a":1}' })).toBe('id: 7\ndata: {"a":1}\n\n');
  });

  it("has an event line only if its message has a name [RW-SSE-1]", () => {
    expect(sseFrame({ id: "7", event: "snapshot", data: "{}" })).toBe("id: 7\nevent: snapshot\ndata: {}\n\n");
    expect(sseFrame({ data: "{}" })).toBe("data: {}\n\n");
  });

  it("is never what a keep-alive, a retry or a cursor looks like [RW-SSE-3]", () => {
    expect(keepalive).toBe(": keepalive\n\n");
    expect(sseRetry(250)).toBe("retry: 250\n\n");
    expect(sseCursor("a:12,b:40")).toBe("id: a:12,b:40\n\n");
  });
});
