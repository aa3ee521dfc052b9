import { z } from 'zod';
import { providerProfileSchema } from './profile.ts';

interface JsonSchema {
  type?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  additionalProperties?: JsonSchema | false;
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
}

interface Field {
  path: string;
  type: string;
  isRequired: boolean;
  default: unknown;
  description: string | undefined;
  /** The condition under which the field may be present; absent: always. */
  where?: string;
}

/** Renders docs/profiles.md: every field of a profile, from its schema. */
export function toReference(): string {
  const rows = profileFields().map(({ path, type, isRequired, default: otherwise, description, where }) =>
    line([
      `\`${path}\``,
      type,
      `${isRequired ? 'yes' : toDefault(otherwise)}${where === undefined ? '' : `, where ${where}`}`,
      `${description}`,
    ]),
  );
  return [
    '# Provider profiles',
    '',
    'A profile is a YAML file that says what one provider can do. `fixtures/providers/` has those of `provider-a` to',
    '`provider-g`; `profile` of a provider in marketplace.yaml names one of your own. An unknown field is an error.',
    '`berth check-config --config marketplace.yaml` checks the profiles that it names. This page is written from the schema',
    '(`npm run generate`). `[]` is an item of a list, `*` any key.',
    '',
    '| Field | Type | Required, or its default | Meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** The fields in the order of the schema. A field that several variants share is listed once. */
export function profileFields(): Field[] {
  const schema = z.toJSONSchema(providerProfileSchema, { io: 'input' }) as JsonSchema;
  const fields = fieldsOf(schema, '');
  return fields.filter(({ path }, index) => fields.findIndex((other) => other.path === path) === index);
}

function fieldsOf(schema: JsonSchema, prefix: string): Field[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const { description, default: otherwise } = field;
    const isRequired = schema.required?.includes(name) === true;
    return [
      { path, type: toType(field), isRequired, default: otherwise, description },
      ...fieldsOf(field, path),
    ];
  });
  const { items, additionalProperties, oneOf = [], anyOf = [] } = schema;
  return [
    ...own,
    ...(items === undefined ? [] : fieldsOf(items, `${prefix}[]`)),
    ...(typeof additionalProperties === 'object' ? fieldsOf(additionalProperties, `${prefix}.*`) : []),
    ...oneOf.flatMap((variant) => fieldsOfVariant(variant, prefix)),
    ...anyOf.flatMap((variant) => fieldsOf(variant, prefix)),
  ];
}

/** A field that only one variant has depends on `supported`. */
function fieldsOfVariant(variant: JsonSchema, prefix: string): Field[] {
  const supported = variant.properties?.['supported']?.const;
  return fieldsOf(variant, prefix).map((field) =>
    field.path === `${prefix}.supported` || field.path.slice(prefix.length + 1).includes('.')
      ? field
      : { ...field, where: `\`supported\` is \`${supported}\`` },
  );
}

function toType({
  type,
  items,
  enum: values,
  const: value,
  oneOf,
  anyOf,
  additionalProperties,
}: JsonSchema): string {
  if (values !== undefined) return values.map((it) => `\`${it}\``).join(' or ');
  if (value !== undefined) return typeof value;
  if (oneOf !== undefined) return 'object';
  if (anyOf !== undefined) return [...new Set(anyOf.map(toType))].join(' or ');
  if (type === 'array') return `list of ${toType(items ?? {})}`;
  return typeof additionalProperties === 'object' ? 'object by key' : (type ?? 'any');
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function toDefault(value: unknown): string {
  return value === undefined ? 'no' : `\`${JSON.stringify(value)}\``;
}
