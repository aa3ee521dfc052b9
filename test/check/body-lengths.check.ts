import { readFileSync } from 'node:fs';
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
}
type Schemas = Readonly<Record<string, Schema>>;

/** The strings and lists of a body that may have any length, by their paths. */
function endless(schemas: Schemas, schema: Schema, path: string): string[] {
  if (schema.$ref !== undefined)
    return endless(schemas, schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, path);
  const types = [schema.type ?? []].flat();
  const isEndless = types.includes('string') && schema.enum === undefined && schema.maxLength === undefined;
  const variants = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  return [
    ...(isEndless ? [path] : []),
    ...(types.includes('array') && schema.maxItems === undefined ? [`${path}[]`] : []),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, value]) =>
      endless(schemas, value, `${path}.${name}`),
    ),
    ...(schema.items === undefined ? [] : endless(schemas, schema.items, `${path}[]`)),
    ...variants.flatMap((variant) => endless(schemas, variant, path)),
  ];
}

it.each([
  ['orchestrator.v1', []],
  // M: leaves the length of a name free.
  ['marketplace', ['post /api/deployments.name', 'patch /api/deployments/{deploymentId}.name']],
])('every string and list that a body of openapi/%s.json may have has a length', (name, exceptions) => {
  const file = new URL(`../../openapi/${name}.json`, import.meta.url);
  const { paths, components } = JSON.parse(readFileSync(file, 'utf8'));
  const bodies = Object.entries<
    Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>
  >(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) =>
      Object.values(requestBody?.content ?? {}).map(({ schema }) => [`${method} ${path}`, schema] as const),
    ),
  );
  expect(bodies.length).toBeGreaterThan(4);
  expect(bodies.flatMap(([path, schema]) => endless(components.schemas, schema, path))).toEqual(exceptions);
});

it('finds what has no length in lists, variants and components', () => {
  const schemas = {
    List: { type: 'array', items: { anyOf: [{ type: 'number' }, { type: ['string', 'null'] }] } },
  };
  const properties = { list: { $ref: '#/components/schemas/List' }, short: { type: 'string', maxLength: 9 } };
  expect(endless(schemas, { properties }, 'a')).toEqual(['a.list[]', 'a.list[]']);
});
