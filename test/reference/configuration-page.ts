import { configSchemas, type JsonSchema, type Place, placesOf } from './config-schemas.ts';

/** docs/configuration.md: where each file is described, and every key of the catalog. */
export function configurationPage(): string {
  return [
    '# Configuration',
    '',
    'Each file has one description of every key, with its default:',
    '',
    '- **berth.yaml**, which `berth serve` runs with: [examples/berth.yaml](../examples/berth.yaml). A platform has the keys of its driver.',
    '- **marketplace.yaml**, which `berth marketplace` runs with: [examples/marketplace.yaml](../examples/marketplace.yaml).',
    '- **A provider’s profile** for the marketplace: [profiles.md](profiles.md).',
    '- **The catalog**, what is sold, where, and how much of it: [below](#the-catalog). `catalog` in berth.yaml names it;',
    '  [fixtures/catalogs/halyard.yaml](../fixtures/catalogs/halyard.yaml) is a complete one.',
    '',
    'An unknown key is an error; `berth check-config` finds it, with file and line. A flag overrides an environment variable, which',
    'overrides the file.',
    '',
    '**In an editor.** `openapi/` has the types of all keys as JSON Schema (`berth.schema.json`, `catalog.schema.json`,',
    '`marketplace.schema.json`, `profile.schema.json`). With this first line, an editor with the YAML language server completes and',
    'checks the file; in a checkout the path begins at `openapi/`:',
    '',
    '```yaml',
    '# yaml-language-server: $schema=node_modules/berth/openapi/berth.schema.json',
    '```',
    '',
    '## The catalog',
    '',
    '`[]` is an item of a list, `*` any key; in brackets are the choices and the default. Generated from the schema',
    '(`npm run generate`).',
    '',
    ...keysOf('catalog').map(toLine),
    '',
  ].join('\n');
}

/** docs/profiles.md: every key of a provider's profile. */
export function profilesPage(): string {
  return [
    '# Provider profiles',
    '',
    'A profile says what one provider can do. `fixtures/providers/` has those of `provider-a` to `provider-g`; `profile` of a provider in',
    'marketplace.yaml names your own. `berth check-config --config marketplace.yaml` finds mistakes. `[]` is an item of a list, `*` any key;',
    'in brackets are the choices and the default. Generated from the schema, which has the types: `openapi/profile.schema.json`.',
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

/** A key that several variants have is there once, and keys with the same name, note and text are together. */
function keysOf(wanted: string): Described[] {
  const { schema } = configSchemas().find(({ name }) => name === wanted) ?? { schema: {} };
  const described: Described[] = [];
  const seen = new Set<string>();
  for (const place of placesOf(schema)) {
    const { path } = place;
    if (seen.has(path)) continue;
    seen.add(path);
    const name = { path, note: noteOf(place) };
    const meaning = place.schema.description ?? '';
    const same = described.find(
      ({ names: [first], ...one }) =>
        one.meaning === meaning && first?.note === name.note && lastOf(first.path) === lastOf(path),
    );
    if (same === undefined) described.push({ names: [name], meaning });
    else same.names.push(name);
  }
  return described;
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

function toLine({ names, meaning }: Described): string {
  const note = names[0]?.note ?? '';
  const paths = names.map(({ path }) => `\`${path}\``).join(', ');
  return `- ${paths}${note === '' ? '' : ` (${note})`}: ${meaning}`;
}

/** The choices, and the default or whether the key is required. */
function noteOf({ schema: key, isRequired }: Place): string {
  const { default: value, properties } = key;
  const isShown = value !== undefined && properties === undefined;
  const choices = choicesOf(key);
  const otherwise = isShown ? `default \`${JSON.stringify(value).replace(/^"(.*)"$/, '$1')}\`` : '';
  const last = isRequired ? 'required' : choices === '' ? otherwise.replace('default ', '') : otherwise;
  return [choices, last].filter(Boolean).join('; ');
}

const choicesOf = ({ enum: values, items }: JsonSchema): string =>
  (values ?? (items || undefined)?.enum ?? []).map((one) => `\`${one}\``).join(', ');
