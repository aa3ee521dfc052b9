import { configSchemas, type JsonSchema, placesOf } from './config-schemas.ts';

const about: Readonly<Record<string, string>> = {
  berth:
    'What `berth serve` runs with. [berth.example.yaml](../berth.example.yaml) has every key with its default. ' +
    '`platform(libvirt)` is the section of a platform with `driver: libvirt`; below `platforms`, by name, each is the same.',
  catalog:
    'What is sold, where, and how much of it: the file that `catalog` in berth.yaml names. ' +
    '[fixtures/catalogs/halyard.yaml](../fixtures/catalogs/halyard.yaml) is a complete one.',
  marketplace:
    'What `berth marketplace` runs with. [marketplace.example.yaml](../marketplace.example.yaml) has every key with its default.',
};

/** docs/configuration.md: every key of the files that a user writes. */
export function configurationPage(): string {
  const sections = configSchemas().flatMap(({ name, title, schema }) =>
    about[name] === undefined ? [] : [`## ${title}`, '', about[name], '', ...tableOf(schema), ''],
  );
  return [
    '# Configuration',
    '',
    'Every key of berth.yaml, of the catalog and of marketplace.yaml; [profiles.md](profiles.md) has those of a provider’s profile.',
    'An unknown key is an error; `berth check-config` finds it, with file and line. This page is written from the schemas',
    '(`npm run generate`). `[]` is an item of a list, `*` any key. Where a line says nothing, the line above speaks of both.',
    '',
    '**In an editor.** `schemas/` has the same as JSON Schema. With this as the first line, an editor with the YAML language server',
    'completes and checks the file:',
    '',
    '```yaml',
    '# yaml-language-server: $schema=node_modules/berth/schemas/berth.schema.json',
    '```',
    '',
    'The others are `catalog.schema.json`, `marketplace.schema.json` and `profile.schema.json`. In a checkout the path begins at',
    '`schemas/`.',
    '',
    ...sections,
  ].join('\n');
}

/** A key that several variants have is there once; those of `platforms` are those of `platform`. */
function tableOf(schema: JsonSchema): string[] {
  const places = placesOf(schema).filter(
    ({ path }, index, all) =>
      !path.startsWith('platforms.') && all.findIndex((other) => other.path === path) === index,
  );
  const rows = places.map(
    ({ path, schema: key, isRequired }) =>
      `| \`${path}\` | ${typeOf(key)} | ${isRequired ? 'required' : defaultOf(key)} | ${key.description ?? ''} |`,
  );
  return ['| Key | Type | Default | Meaning |', '|---|---|---|---|', ...rows];
}

function typeOf(key: JsonSchema): string {
  const { type, enum: values, const: value, items, prefixItems, oneOf, anyOf, additionalProperties } = key;
  if (values !== undefined) return values.map((one) => `\`${one}\``).join(' or ');
  if (value !== undefined) return `\`${value}\``;
  if (oneOf !== undefined) return 'object';
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(' or ');
  if (prefixItems !== undefined) return `[${prefixItems.map(typeOf).join(', ')}]`;
  if (type === 'array') return `list of ${typeOf(items || {})}`;
  if (type === 'integer') return 'whole number';
  return additionalProperties ? 'object by key' : (type ?? 'any');
}

/** The defaults of an object stand with its keys. */
function defaultOf({ default: value, properties }: JsonSchema): string {
  return value === undefined || properties !== undefined ? '' : `\`${JSON.stringify(value)}\``;
}
