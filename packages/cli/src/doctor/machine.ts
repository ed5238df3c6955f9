// What the machine gives: Node, open files, space.

import { readFileSync, statfsSync } from "node:fs";
import { type Check, doubtful, type Finding, inWords, right, wrong } from "./finding.js";
import { nearestFolder } from "./folder.js";

const nodeLeast = [20, 19] as const;
const openFilesLeast = 4096;
const gibibyte = 1024 ** 3;
const bytesWrong = gibibyte / 16;
const bytesDoubtful = gibibyte;
const inodesWrong = 100;
const inodesDoubtful = 10_000;

export const nodeVersion: Check = () => [judgeNode(process.versions.node)];

export function judgeNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < nodeLeast[0] || (major === nodeLeast[0] && minor < nodeLeast[1]);
  if (!isOld) return right("node", `Node ${version}`);
  return wrong("node", `Node ${version} is too old`, `install Node ${nodeLeast.join(".")} or newer`);
}

export const openFiles: Check = () => {
  let limits: string;
  try {
    limits = readFileSync("/proc/self/limits", "utf8");
  } catch {
    // Only Linux tells it this way.
    return [];
  }
  return [judgeOpenFiles(/^Max open files +(\S+)/m.exec(limits)?.[1] ?? "unlimited")];
};

export function judgeOpenFiles(most: string): Finding {
  const says = `a process may have ${most} files and connections open`;
  if (most === "unlimited" || Number(most) >= openFilesLeast) return right("open files", says);
  return doubtful(
    "open files",
    `${says}, and every reader is one`,
    "raise it with `ulimit -n 65536`, or LimitNOFILE= in a systemd unit",
  );
}

export const diskSpace: Check = ({ settings }) => {
  const { bavail, bsize, files, ffree } = statfsSync(nearestFolder(settings.dataFolder));
  return judgeSpace({ bytes: bavail * bsize, inodes: files === 0 ? undefined : ffree });
};

/** Some file systems do not count inodes. */
export function judgeSpace(free: {
  readonly bytes: number;
  readonly inodes: number | undefined;
}): readonly Finding[] {
  const findings: Finding[] = [];
  const space = `${inWords(free.bytes)} free for the data folder`;
  const makeRoom = "free some space, shorten retention, or choose a larger disk with --data";
  if (free.bytes < bytesWrong) findings.push(wrong("disk", `only ${space}`, makeRoom));
  else if (free.bytes < bytesDoubtful) findings.push(doubtful("disk", `only ${space}`, makeRoom));
  else findings.push(right("disk", space));

  if (free.inodes === undefined || free.inodes >= inodesDoubtful) return findings;
  const judge = free.inodes < inodesWrong ? wrong : doubtful;
  return [...findings, judge("disk", `only ${free.inodes} more files fit on the disk`, "delete files there")];
}
