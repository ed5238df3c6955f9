import { artifactsOf, type Place } from "../artifacts/artifact.js";
import type { FileWatch } from "../artifacts/watch.js";
import type { Hook } from "./hook.js";

/** Tells which files of the workspace a call has changed. It is one call's, because it has looked before. */
export function fileChangesHook(watch: FileWatch, place: Place): Hook {
  return {
    name: "file-changes",
    points: ["post_tool_use", "post_tool_failure"],
    required: false,
    takesTime: false,
    appliesTo: () => true,
    async run() {
      const changes = await watch.changes();
      return { kind: "go", facts: { files: changes.length }, told: await artifactsOf(changes, place) };
    },
  };
}
