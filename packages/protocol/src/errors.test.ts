import { describe, expect, it } from "vitest";
import { type ErrorCode, type ErrorRow, errorTable, isErrorCode, RunwireError } from "./errors.js";

const rows = Object.entries(errorTable) as [ErrorCode, ErrorRow][];

const grpcNames = new Set([
  "OK",
  "CANCELLED",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "UNAUTHENTICATED",
]);

// One row per HTTP status of the error table everyone agreed on: its WebSocket closes and gRPC statuses.
const agreed: {
  readonly [status: number]: { readonly close: readonly number[]; readonly grpc: readonly string[] };
} = {
  400: { close: [4400, 1003, 1007], grpc: ["INVALID_ARGUMENT"] },
  401: { close: [4401], grpc: ["UNAUTHENTICATED"] },
  403: { close: [], grpc: ["PERMISSION_DENIED"] },
  404: { close: [4404], grpc: ["NOT_FOUND", "UNIMPLEMENTED"] },
  409: { close: [], grpc: ["ABORTED", "FAILED_PRECONDITION"] },
  410: { close: [4410], grpc: ["OUT_OF_RANGE"] },
  413: { close: [1009], grpc: ["RESOURCE_EXHAUSTED"] },
  422: { close: [], grpc: ["INVALID_ARGUMENT"] },
  429: { close: [4429], grpc: ["RESOURCE_EXHAUSTED"] },
  500: { close: [1011], grpc: ["INTERNAL"] },
  503: { close: [1012, 1013], grpc: ["UNAVAILABLE"] },
  507: { close: [], grpc: ["RESOURCE_EXHAUSTED"] },
};

describe("the error table", () => {
  it("names every error KAI-<area>-<kind>-<four digits> [RW-ERR-1]", () => {
    for (const [code] of rows) expect(code).toMatch(/^KAI-[A-Z]+-[A-Z]+-\d{4}$/);
  });

  it("keeps the five codes of the agent stream [RW-ERR-2]", () => {
    expect(errorTable["KAI-STREAM-CONN-0001"].title).toBe("client disconnected mid-stream");
    expect(errorTable["KAI-STREAM-CONN-0002"].status).toBe(410);
    expect(errorTable["KAI-STREAM-PROTO-0001"].status).toBe(422);
    expect(errorTable["KAI-STREAM-PROTO-0002"].status).toBe(422);
    expect(errorTable["KAI-STREAM-BUF-0001"].title).toBe("backpressure drop occurred");
  });

  it.each(rows)("%s says one thing on every transport [RW-ERR-3]", (_code, { status, close, grpc }) => {
    expect(status === 200 || (status >= 400 && status <= 599)).toBe(true);
    expect(grpcNames).toContain(grpc);
    const row = agreed[status];
    if (row === undefined) return expect(close).toBeUndefined();
    expect(row.grpc).toContain(grpc);
    if (close !== undefined) expect(row.close).toContain(close);
  });

  it.each(rows)("%s fits in a banner and says what to do", (_code, { title, help }) => {
    expect(title).toMatch(/^[^\s.][^.\n]{2,118}[^\s.]$/);
    expect(help).toMatch(/^[A-Z`][^\n]*[.]$/);
  });

  it("is asked for its own codes only", () => {
    expect(isErrorCode("KAI-RUN-MISSING-0001")).toBe(true);
    for (const other of ["constructor", "__proto__", "", null, 404]) expect(isErrorCode(other)).toBe(false);
  });
});

describe("an error", () => {
  it("travels as code, message and retry, and as nothing else [RW-ERR-4]", () => {
    const cause = new Error("secret");
    const error = new RunwireError("KAI-SERVER-STORE-0001", "disk is read-only", { cause });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      error: { code: "KAI-SERVER-STORE-0001", message: "store unavailable: disk is read-only", retry: true },
    });
    expect(error.cause).toBe(cause);
    expect(error.row).toBe(errorTable["KAI-SERVER-STORE-0001"]);
    expect(new RunwireError("KAI-RUN-MISSING-0001").message).toBe("run not found");
  });
});
