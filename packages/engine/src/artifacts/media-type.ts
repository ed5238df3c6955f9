import { extname } from "node:path";

/** By the file's name; where that says nothing, by whether it is text. */
export function mediaTypeOf(path: string, isText: boolean): string {
  const known = types.get(extname(path).toLowerCase());
  return known ?? (isText ? "text/plain" : "application/octet-stream");
}

const types: ReadonlyMap<string, string> = new Map([
  [".css", "text/css"],
  [".csv", "text/csv"],
  [".gif", "image/gif"],
  [".gz", "application/gzip"],
  [".htm", "text/html"],
  [".html", "text/html"],
  [".jpeg", "image/jpeg"],
  [".jpg", "image/jpeg"],
  [".js", "text/javascript"],
  [".json", "application/json"],
  [".md", "text/markdown"],
  [".mjs", "text/javascript"],
  [".pdf", "application/pdf"],
  [".png", "image/png"],
  [".svg", "image/svg+xml"],
  [".webp", "image/webp"],
  [".xml", "application/xml"],
  [".yaml", "application/yaml"],
  [".yml", "application/yaml"],
  [".zip", "application/zip"],
]);
