import type { Dice } from '../soak/dice.ts';
import type { Document, Schema } from './document.ts';
import type { Known } from './setting.ts';

/** Under which name a value is known, where the field has another. */
const ALIASES: Readonly<Record<string, string>> = {
  instance_ids: 'instanceId',
  volume_ids: 'volumeId',
  volumeIds: 'volumeId',
  sshKeyId: 'id',
  subjectId: 'deploymentId',
  ssh_keys: 'public_key',
  publicKey: 'public_key',
  ssh_public_key: 'public_key',
  offer: 'configuration_id',
  offerId: 'configuration_id',
  operatingSystem: 'operating_system_image',
  sizeInGb: 'size_gb',
  gpuCount: 'gpu_count',
  providers: 'provider',
  type: 'volume_type',
};

/** Of which nearly always the first is sent, in place of the second. */
const EITHER = [
  ['sshKeyId', 'ssh_public_key'],
  ['api_key', 'username'],
  ['api_key', 'password'],
] as const;

const HOSTILE: string[] = [
  ...JSON.parse(
    String.raw`["", " ", "\u0000", "a\u0000b", "\ud800", "a\udfffb", "\ufeff", "\u202egnp", "a\nb"]`,
  ),
  ...['__proto__', 'null', "' OR 1=1 --", '😀'.repeat(200), 'x'.repeat(9_000)],
];
const nested = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`);
/** Marks a literal that JSON.stringify would write otherwise. */
const RAW = '@raw ';
const OTHER: unknown[] = [
  ...JSON.parse('[null, true, false, 0, -1, 0.5, 1.5, 2147483648, 9007199254740992, 1e308]'),
  ...[[], {}, [null], [[]], { length: 3 }, nested(200), `${RAW}${'1'.repeat(400)}`],
  ...'1e400 -1e400 -0 0.1e1 9007199254740993 1E+2'.split(' ').map((literal) => RAW + literal),
  ...HOSTILE,
];
const DATES = ['2026-11-21T04:38:00.000Z', '2031-01-01T00:00:00+05:30', '2099-12-31T23:59:59.999999Z'];

/** Draws values for the schemas of a document. */
export class Values {
  readonly #dice: Dice;
  readonly #document: Document;
  readonly #known: Known;

  constructor(dice: Dice, document: Document, known: Known) {
    this.#dice = dice;
    this.#document = document;
    this.#known = known;
  }

  /** A value that the schema allows, which exists where something of that name is known. */
  lawful(given: Schema, name = ''): unknown {
    const schema = this.#document.resolve(given);
    const known = this.#dice.pick(this.#knownAs(name));
    if (schema.type === 'array') return this.#list(schema, name);
    if (known !== undefined && !schema.enum && this.#dice.chance() < 0.97) return known;
    if (schema.enum) return this.#dice.pick(schema.enum);
    if (schema.properties) return this.#object(schema);
    if (schema.type === 'boolean') return this.#dice.chance() < 0.5;
    if (schema.type === 'number' || schema.type === 'integer') return this.#number(schema);
    return this.#text(schema);
  }

  /** A value that is rarely allowed. */
  odd(given: Schema): unknown {
    const { maxLength, minimum, maximum } = this.#document.resolve(given);
    const beyond = [
      ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1), 'é'.repeat(maxLength)]),
      ...(minimum === undefined ? [] : [minimum - 1]),
      ...(maximum === undefined ? [] : [maximum + 1]),
    ];
    return this.#dice.pick(this.#dice.chance() < 0.3 && beyond.length > 0 ? beyond : OTHER);
  }

  /** Replaces, removes, repeats or adds something somewhere in a body. Returns its JSON. */
  mutated(body: unknown, schema: Schema): string {
    const holders = holdersIn(body);
    const holder = this.#dice.pick(holders) ?? {};
    const key = this.#dice.pick(Object.keys(holder));
    const properties = this.#document.resolve(schema).properties ?? {};
    const wanted = properties[key ?? ''] ?? {};
    const kind = this.#dice.chance();
    if (key === undefined || kind < 0.15) holder[`x-${this.#dice.pick(HOSTILE)?.slice(0, 9)}`] = this.odd({});
    else if (kind < 0.3) delete holder[key];
    else holder[key] = this.odd(wanted);
    const text = toJson(body);
    if (kind < 0.9 || key === undefined || !text.startsWith('{"')) return text;
    return `{${JSON.stringify(key)}:${toJson(this.odd(wanted))},${text.slice(1)}`;
  }

  /** Text that is hostile in a path or a query. */
  hostile(): string {
    return this.#dice.pick(HOSTILE) ?? '';
  }

  #knownAs(name: string): unknown[] {
    return this.#known[ALIASES[name] ?? name] ?? [];
  }

  #list(schema: Schema, name: string): unknown[] {
    const { minItems = 0, maxItems = 3, items = {} } = schema;
    const most = this.#dice.chance() < 0.03 ? maxItems : Math.min(maxItems, minItems + 2);
    const length = minItems + Math.floor(this.#dice.chance() * (most - minItems + 1));
    return Array.from({ length }, () => this.lawful(items, name));
  }

  #object({ properties = {}, required = [] }: Schema): object {
    const chosen = Object.entries(properties).filter(
      ([name]) =>
        required.includes(name) || this.#dice.chance() < (this.#knownAs(name).length > 0 ? 0.6 : 0.15),
    );
    const fields = Object.fromEntries(chosen.map(([name, schema]) => [name, this.lawful(schema, name)]));
    for (const [one, other] of EITHER)
      if (other in properties && this.#dice.chance() < 0.9) {
        delete fields[other];
        fields[one] = this.lawful({ type: 'string' }, one);
      }
    return fields;
  }

  #number({ minimum, exclusiveMinimum, maximum = 2 ** 31, type }: Schema): number {
    const least = minimum ?? (type === 'integer' ? 0 : (exclusiveMinimum ?? 0) + 0.001);
    const between = this.#dice.between(least, Math.min(maximum, 200));
    return (
      this.#dice.pick([least, maximum, least + 1, type === 'integer' ? Math.floor(between) : between]) ?? 0
    );
  }

  #text({ minLength = 0, maxLength = 300, pattern, format }: Schema): string {
    if (format === 'date-time') return this.#dice.pick(DATES) ?? '';
    const length = this.#dice.pick([minLength, minLength + 1, 12, Math.min(maxLength, 255), maxLength]) ?? 1;
    const letters = pattern === undefined ? ['a', 'Z', '9', '-', ' ', 'é', '漢', '😀'] : ['1', '7'];
    const most = pattern?.includes('{1,15}') ? 15 : maxLength;
    return (
      Array.from({ length: Math.min(length, most) }, () => this.#dice.pick(letters)).join('') ||
      (pattern ? '1' : '')
    );
  }
}

type Holder = Record<string, unknown>;

function holdersIn(value: unknown): Holder[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value as Holder, ...Object.values(value).flatMap(holdersIn)];
}

/** JSON in which literals stand as they are. */
export function toJson(value: unknown): string {
  return JSON.stringify(value).replace(/"@raw ([^"]+)"/g, '$1');
}
