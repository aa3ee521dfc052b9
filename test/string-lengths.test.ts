import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  maxLength?: number;
  maxItems?: number;
  description?: string;
}
interface Document {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>>;
  components: { schemas: Record<string, Schema> };
}

/** The strings and lists of a body that have no end, by their paths. */
function endless(document: Document, schema: Schema, path: string): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return endless(document, document.components.schemas[name] ?? {}, path);
  }
  const inner = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const types = [schema.type ?? []].flat();
  return [
    ...(types.includes('string') && schema.enum === undefined && schema.maxLength === undefined
      ? [path]
      : []),
    ...(types.includes('array') && schema.maxItems === undefined ? [`${path}[]`] : []),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, value]) =>
      endless(document, value, `${path}.${name}`),
    ),
    ...(schema.items === undefined ? [] : endless(document, schema.items, `${path}[]`)),
    ...inner.flatMap((part) => endless(document, part, path)),
  ];
}

function endlessOf(file: string): string[] {
  const document = JSON.parse(readFileSync(join(import.meta.dirname, '..', file), 'utf8')) as Document;
  const bodies = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) =>
      Object.values(requestBody?.content ?? {}).map(({ schema }) => ({ path: `${method} ${path}`, schema })),
    ),
  );
  expect(bodies.length).toBeGreaterThan(4);
  return bodies.flatMap(({ path, schema }) => endless(document, schema, path));
}

it('every string and list that a body of the orchestrator may have has a length', () => {
  expect(endlessOf('openapi/orchestrator.v1.json')).toEqual([]);
});

it('so has every one of the marketplace, but the name of a deployment, which M: leaves free', () => {
  expect(endlessOf('openapi/marketplace.json')).toEqual([
    'post /api/deployments.name',
    'patch /api/deployments/{deploymentId}.name',
  ]);
});
