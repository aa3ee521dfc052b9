import { isObject, stringsField } from '../text/json.ts';
import { readPackageJson } from './package.ts';

/** For each status, the statuses that a later poll may show. A poll may miss the statuses in between. */
export type LawfulPaths = ReadonlyMap<string, ReadonlySet<string>>;

/** The transitive closure of the transitions in fixtures/transitions.json. */
export function lawfulPaths(resource: 'instance' | 'volume'): LawfulPaths {
  const file = readPackageJson('fixtures/transitions.json');
  const table = isObject(file) ? file[resource] : undefined;
  const next = isObject(table) ? table['next'] : undefined;
  if (!isObject(next)) throw new Error(`fixtures/transitions.json has no transitions of ${resource}`);
  return new Map(
    Object.keys(next).map((status) => [status, reachable(status, (from) => stringsField(next, from))]),
  );
}

function reachable(start: string, next: (from: string) => readonly string[]): Set<string> {
  const seen = new Set<string>();
  const open = [...next(start)];
  for (let status = open.pop(); status !== undefined; status = open.pop()) {
    if (seen.has(status)) continue;
    seen.add(status);
    open.push(...next(status));
  }
  return seen;
}
