import { configSchemas, type JsonSchema, type Place, placesOf } from './config-schemas.ts';

const about = {
  berth:
    'What `berth serve` runs with. [berth.example.yaml](../berth.example.yaml) has every key. `platform(libvirt)` is the section ' +
    'of a platform with `driver: libvirt`; below `platforms`, by name, each is the same.',
  catalog:
    'What is sold, where, and how much of it: the file that `catalog` in berth.yaml names. ' +
    '[fixtures/catalogs/halyard.yaml](../fixtures/catalogs/halyard.yaml) is a complete one.',
  marketplace:
    'What `berth marketplace` runs with. [marketplace.example.yaml](../marketplace.example.yaml) has every key.',
};

/** docs/configuration.md: every key of the files that a user writes. */
export function configurationPage(): string {
  const keys = { berth: keysOf('berth'), catalog: keysOf('catalog'), marketplace: keysOf('marketplace') };
  const known = new Set(keys.berth.map(toLine));
  const repeated = keys.marketplace.filter((key) => known.has(toLine(key)));
  return [
    '# Configuration',
    '',
    'Every key of berth.yaml, of the catalog and of marketplace.yaml; [profiles.md](profiles.md) has those of a provider’s profile.',
    'An unknown key is an error; `berth check-config` finds it, with file and line. `[]` is an item of a list, `*` any key; in',
    'brackets is the default, or else the type. Generated from the schemas (`npm run generate`).',
    '',
    '**In an editor.** `schemas/` has the same as JSON Schema. With this first line, an editor with the YAML language server',
    'completes and checks the file:',
    '',
    '```yaml',
    '# yaml-language-server: $schema=node_modules/berth/schemas/berth.schema.json',
    '```',
    '',
    'The others are `catalog.schema.json`, `marketplace.schema.json` and `profile.schema.json`. In a checkout the path begins at',
    '`schemas/`.',
    '',
    ...['## berth.yaml', '', about.berth, '', ...keys.berth.map(toLine), ''],
    ...['## the catalog', '', about.catalog, '', ...keys.catalog.map(toLine), ''],
    ...['## marketplace.yaml', '', about.marketplace, ''],
    ...keys.marketplace.filter((key) => !repeated.includes(key)).map(toLine),
    '',
    `As in berth.yaml: ${repeated.map(({ names }) => names.map((name) => `\`${name.path}\``).join(', ')).join(', ')}.`,
    '',
  ].join('\n');
}

/** docs/profiles.md: every key of a provider's profile. */
export function profilesPage(): string {
  return [
    '# Provider profiles',
    '',
    'A profile is a YAML file that says what one provider can do. `fixtures/providers/` has those of `provider-a` to',
    '`provider-g`; `profile` of a provider in marketplace.yaml names your own. An unknown key is an error;',
    '`berth check-config --config marketplace.yaml` finds it. `[]` is an item of a list, `*` any key; in brackets is the default,',
    'or else the type. Generated from the schema (`npm run generate`).',
    '',
    ...keysOf('profile').map(toLine),
    '',
  ].join('\n');
}

/** Keys that one text describes. */
interface Described {
  names: { path: string; note: string }[];
  meaning: string;
}

/**
 * A key without a text of its own belongs to the one before it. A key that several variants have is there once, and keys with
 * the same name, note and text are together; those of `platforms` are those of `platform`.
 */
function keysOf(wanted: string): Described[] {
  const { schema } = configSchemas().find(({ name }) => name === wanted) ?? { schema: {} };
  const places = placesOf(schema).filter(
    ({ path }, index, all) =>
      !path.startsWith('platforms.') && all.findIndex((other) => other.path === path) === index,
  );
  const described: Described[] = [];
  for (const place of places) {
    const { path, schema: key } = place;
    const name = { path, note: noteOf(place) };
    const meaning = key.description ?? '';
    const last = described.at(-1);
    const same = described.find((one) => one.meaning === meaning && isSame(one.names[0], name));
    if (meaning === '' && last !== undefined && areRelated(last.names[0]?.path ?? '', path))
      last.names.push(name);
    else if (meaning !== '' && same !== undefined) same.names.push(name);
    else if (meaning !== '' || (key.properties ?? key.oneOf) === undefined)
      described.push({ names: [name], meaning });
  }
  return described;
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

const isSame = (
  one: { path: string; note: string } | undefined,
  other: { path: string; note: string },
): boolean => one !== undefined && lastOf(one.path) === lastOf(other.path) && one.note === other.note;

/** Whether the second key is beside the first or below it. */
const areRelated = (first: string, second: string): boolean =>
  second.startsWith(`${first}.`) ||
  second.startsWith(`${first}[`) ||
  second.startsWith(first.slice(0, first.lastIndexOf('.') + 1) || '\0');

function toLine({ names, meaning }: Described): string {
  const sameNote = names.every(({ note }) => note === names[0]?.note);
  const keys = names.map(({ path, note }, index) => {
    const isNoted = note !== '' && (!sameNote || index === names.length - 1);
    return `\`${path}\`${isNoted ? ` (${note})` : ''}`;
  });
  return `- ${keys.join(', ')}${meaning === '' ? '' : `: ${meaning}`}`;
}

/** The default; without one the type, unless it is an object, whose keys say more. */
function noteOf({ schema: key, isRequired }: Place): string {
  const { default: value, properties } = key;
  const isShown = value !== undefined && properties === undefined;
  const type = isShown && key.enum === undefined ? '' : typeOf(key);
  const otherwise = isShown ? `default \`${JSON.stringify(value).replace(/^"(.*)"$/, '$1')}\`` : '';
  const last = isRequired ? 'required' : type === '' ? otherwise.replace('default ', '') : otherwise;
  return [type === 'object' ? '' : type, last].filter(Boolean).join('; ');
}

function typeOf(key: JsonSchema): string {
  const { type, enum: values, const: value, items, prefixItems, oneOf, anyOf, additionalProperties } = key;
  if (values !== undefined) return values.map((one) => `\`${one}\``).join(', ');
  if (value !== undefined) return typeof value === 'boolean' ? 'boolean' : `\`${value}\``;
  if (oneOf !== undefined) return 'object';
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(' or ');
  if (prefixItems !== undefined) return `[${prefixItems.map(typeOf).join(', ')}]`;
  if (type === 'array') return items && items.properties === undefined ? `list of ${typeOf(items)}` : 'list';
  return additionalProperties ? 'object by key' : (type ?? 'any');
}
