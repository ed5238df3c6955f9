// A changed file as a fact: what it is now, and how it got there. Its content and its difference are blobs of the commit
// that tells of it; a file that is too large for that is told without.

import { createHash } from "node:crypto";
import { beginningOf, type Facts } from "@runwire/protocol";
import type { AttachingDraft } from "@runwire/server";
import { factOf } from "../telling.js";
import { inFolder, namesOf, openFile } from "../tools/workspace.js";
import { unifiedDiff } from "./diff.js";
import { artifactLimits as limits } from "./limits.js";
import { mediaTypeOf } from "./media-type.js";
import type { FileChange } from "./watch.js";

export interface Place {
  readonly call_id: string;
  /** The tree's: a path is the same artifact in all of its runs. */
  readonly root_id: string;
  readonly workspace: string;
}

/** Facts of these changes, and of how many more there are. */
export async function artifactsOf(
  changes: readonly FileChange[],
  place: Place,
): Promise<readonly AttachingDraft[]> {
  const told: AttachingDraft[] = [];
  let roomBytes: number = limits.contentsBytesMax;
  for (const change of changes.slice(0, limits.changesMax)) {
    const draft = await artifactOf(change, place, roomBytes);
    for (const { content } of Object.values(draft.attached ?? {})) roomBytes -= content.length;
    told.push(draft);
  }
  const more = changes.length - told.length;
  if (more > 0) told.push(factOf(place.call_id, "artifact.changed", { change: "more", more }));
  return told;
}

async function artifactOf(change: FileChange, place: Place, roomBytes: number): Promise<AttachingDraft> {
  const { path, before, after } = change;
  const file = after === null ? null : await fileNow(change, place.workspace);
  const old = before?.content ?? null;
  const content = file?.content != null && file.content.length <= roomBytes ? file.content : null;
  const [oldText, text] = [textOf(old), textOf(content)];
  const isShown =
    (change.change === "created" || oldText !== null) &&
    (after === null || (text !== null && text.length <= limits.comparedBytesMax));
  const diff = isShown ? unifiedDiff(path, oldText, text) : undefined;
  const facts: Facts = {
    path,
    change: change.change,
    ...(file === null ? {} : { bytes: file.bytes, media_type: mediaTypeOf(path, text !== null) }),
    ...(file?.version_id === undefined ? {} : { version_id: file.version_id }),
    ...(old === null ? {} : { previous_version_id: versionOf(old) }),
    ...(text === null ? {} : { preview: beginningOf(text, limits.previewCharsMax) }),
  };
  const attached = {
    ...(content === null ? {} : { read_ref: { content, media_type: text === null ? binary : plain } }),
    ...(diff === undefined ? {} : { diff_ref: { content: Buffer.from(diff), media_type: plain } }),
  };
  const artifact_id = artifactIdOf(place.root_id, path);
  return { ...factOf(place.call_id, "artifact.changed", facts, { artifact_id }), attached };
}

const plain = "text/plain; charset=utf-8";
const binary = "application/octet-stream";

function artifactIdOf(root_id: string, path: string): string {
  return `art_${createHash("sha256").update(`${root_id}\0${path}`).digest("hex").slice(0, 32)}`;
}

interface FileNow {
  readonly bytes: number;
  readonly version_id?: string;
  readonly content: Buffer | null;
}

/** As it is at this moment, which may be later than its listing: what is told belongs together. */
async function fileNow({ path, after }: FileChange, workspace: string): Promise<FileNow> {
  const known = after?.content ?? null;
  if (known !== null) return { bytes: known.length, version_id: versionOf(known), content: known };
  const names = namesOf(path);
  return inFolder(workspace, names.slice(0, -1), false, async (folder): Promise<FileNow> => {
    const file = await openFile(folder, names.at(-1) ?? "");
    try {
      const { size } = await file.stat();
      if (size > limits.versionBytesMax) return { bytes: size, content: null };
      const hash = createHash("sha256");
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of file.createReadStream({ autoClose: false, end: limits.versionBytesMax })) {
        hash.update(chunk as Buffer);
        bytes += (chunk as Buffer).length;
        if (bytes <= limits.contentBytesMax) chunks.push(chunk as Buffer);
      }
      const content = bytes <= limits.contentBytesMax ? Buffer.concat(chunks) : null;
      return { bytes, version_id: `sha256:${hash.digest("hex")}`, content };
    } finally {
      await file.close();
    }
    // Gone since it was listed: the next look tells that.
  }).catch((): FileNow => ({ bytes: after?.bytes ?? 0, content: null }));
}

function versionOf(content: Buffer): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

function textOf(content: Buffer | null): string | null {
  if (content === null || content.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    // Not UTF-8: bytes, and told as such.
    return null;
  }
}
