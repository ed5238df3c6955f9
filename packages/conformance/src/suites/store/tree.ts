import type { Key, RunUnderTest, StoreUnderTest } from "./under-test.js";

/** Every run of a tree, root first and each before those below it. */
export async function treeOf(
  store: Pick<StoreUnderTest, "head" | "children">,
  { tenant, run_id }: Key,
): Promise<readonly RunUnderTest[]> {
  const root = (await store.head({ tenant, run_id }))?.run.root_id;
  const found: RunUnderTest[] = [];
  for (let level = root === undefined ? [] : [root]; level.length > 0; ) {
    const below: string[] = [];
    for (const run_id of level) {
      const run = (await store.head({ tenant, run_id }))?.run;
      if (run !== undefined) found.push(run);
      for (let cursor = "", more = true; more; ) {
        const page = await store.children({ tenant, run_id }, { limit: 100, cursor });
        below.push(...page.children);
        more = page.next !== null;
        cursor = page.next ?? "";
      }
    }
    level = below;
  }
  return found;
}
