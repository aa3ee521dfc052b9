import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { marketplaceConfigSchema } from '../../src/config/marketplace/schema.ts';
import { packageRoot } from '../../src/config/package-root.ts';
import { configSchema } from '../../src/config/schema.ts';
import { providerProfileSchema } from '../../src/marketplace/providers/profile.ts';
import { catalogFileSchema } from '../../src/orchestrator/catalog/catalog-schema.ts';
import { describedKeys } from './described-keys.ts';

export interface JsonSchema {
  title?: string;
  type?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema | false;
  prefixItems?: JsonSchema[];
  additionalProperties?: JsonSchema | false;
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
}

/** The files that a user writes. `example`: has every key, and says of each what it is for. */
const files = [
  { name: 'berth', title: 'berth.yaml', schema: configSchema, example: 'examples/berth.yaml' },
  { name: 'catalog', title: 'the catalog', schema: catalogFileSchema, example: undefined },
  {
    name: 'marketplace',
    title: 'marketplace.yaml',
    schema: marketplaceConfigSchema,
    example: 'examples/marketplace.yaml',
  },
  { name: 'profile', title: 'the profile of a provider', schema: providerProfileSchema, example: undefined },
] as const;

/** JSON Schemas of the files, for editors: what the server checks beyond them, `berth check-config` says. */
export function configSchemas(): { name: string; title: string; schema: JsonSchema }[] {
  return files.map(({ name, title, schema, example }) => {
    const json = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
    if (example !== undefined) describe(json, readFileSync(join(packageRoot(), example), 'utf8'));
    return { name, title, schema: { title: `Berth: ${title}`, ...json } };
  });
}

/** A key and where it stands; one that several platforms have is there for each. */
export interface Place {
  path: string;
  schema: JsonSchema;
  isRequired: boolean;
}

/** Every key, in the order of the schema. `[]` is an item of a list, `*` any key, `platform(exec)` that of a driver. */
export function placesOf(schema: JsonSchema, prefix = ''): Place[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const isRequired = schema.required?.includes(name) === true;
    return [{ path, schema: inner, isRequired }, ...placesOf(inner, path)];
  });
  const { items, additionalProperties, oneOf = [], anyOf = [] } = schema;
  return [
    ...own,
    ...(items ? placesOf(items, `${prefix}[]`) : []),
    ...(additionalProperties ? placesOf(additionalProperties, `${prefix}.*`) : []),
    ...[...oneOf, ...anyOf].flatMap((variant) => placesOf(variant, variantPath(prefix, variant))),
  ];
}

function variantPath(prefix: string, { properties }: JsonSchema): string {
  const driver = properties?.['driver']?.const;
  return typeof driver === 'string' ? `${prefix}(${driver})` : prefix;
}

function describe(schema: JsonSchema, example: string): void {
  const places = placesOf(schema);
  const asWritten = ({ path }: Place): string => path.replace('platforms.*', 'platform').replaceAll('[]', '');
  const drivers = places.flatMap((place) => /^platform\(\w+\)/.exec(asWritten(place)) ?? []);
  const known = new Set([...places.map(asWritten), ...drivers]);
  const described = describedKeys(example, (path) => known.has(path));
  for (const place of places) {
    const description = described.get(asWritten(place));
    if (description !== undefined) place.schema.description = description;
  }
}
