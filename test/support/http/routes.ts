import { readFileSync } from 'node:fs';

export interface Route {
  method: string;
  /** As in the document, such as `/instances/{instanceId}`. */
  path: string;
  isPublic: boolean;
  hasBody: boolean;
}

interface Operation {
  security?: unknown[];
  requestBody?: unknown;
}

const document: { paths: Record<string, Record<string, Operation>> } = JSON.parse(
  readFileSync(new URL('../../../openapi/orchestrator.v1.json', import.meta.url), 'utf8'),
);

/** Every route of the published document, so that a new one cannot be forgotten. */
export const routes: Route[] = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.entries(operations).map(([method, { security, requestBody }]) => ({
    method: method.toUpperCase(),
    path,
    isPublic: security?.length === 0,
    hasBody: requestBody !== undefined,
  })),
);

/** The path with ids put in. */
export function fillPath(path: string, ids: { instanceId: string; volumeId: string }): string {
  return path.replace('{instanceId}', ids.instanceId).replace('{volumeId}', ids.volumeId);
}
