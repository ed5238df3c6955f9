import type { RunLog } from "./log.js";
import type { Work } from "./work.js";

/** What people have said to the running run becomes a part of its conversation. */
export function handOn(log: RunLog, steers: Work["steers"]): Promise<void> {
  return log.write(
    ...steers.map(
      ({ steer_id, text }) => ({ type: "steer.delivered", payload: { steer_id, text } }) as const,
    ),
  );
}
