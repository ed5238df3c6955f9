import { type ErrorCode, isErrorCode } from "@runwire/protocol";

/** Why a WebSocket was opened and closed at once, where its close says so. */
export function refusalIn(reason: Buffer): ErrorCode | undefined {
  const [code] = String(reason).split(": ");
  return isErrorCode(code) ? code : undefined;
}
