import { z } from 'zod';
import { invalidRequest } from '../../contract/errors.ts';
import { withIds, withoutBase } from '../operations.ts';
import { MARKETPLACE, mostLike, withoutInfinity } from '../options.ts';
import { parseSetting } from '../settings.ts';
import { type FaultName, type FaultParams, faultCatalog, faultNames } from './catalog/catalog.ts';
import type { Fault, FaultClock, Trigger } from './fault.ts';

/** `*` for any route, a method and a path, or a call of the driver. */
const routeSchema = z.string().regex(/^(\*|(\*|[A-Z]+) \/\S*|[a-z]+(\.[a-z]+)?)$/, {
  error:
    'expected `*`, a method and a path such as `GET /instances/{id}`, or a call of the driver such as create',
});

const armingShape = {
  provider: z.string().optional().meta({
    description: 'Such as provider-a, or marketplace. Default: every provider, and not the marketplace.',
  }),
  route: z
    .union([routeSchema, z.array(routeSchema)])
    .optional()
    .meta({
      description:
        'Such as `GET /instances/{id}`; `*` is any. For faults of the platform, calls of the driver such as create. Default: the fault’s own.',
    }),
  instance: z.string().optional().meta({ description: 'Only this instance, by its id.' }),
  volume: z.string().optional().meta({ description: 'Only this volume, by its id.' }),
  times: z
    .union([z.int().min(1), z.literal('sticky')])
    .optional()
    .meta({
      description: 'How often it triggers; `sticky`: until disarmed. Default: the fault’s own, mostly once.',
    }),
  skip: z
    .int()
    .min(0)
    .default(0)
    .meta({ description: 'Number of occasions to skip before the first time that it triggers.' }),
  probability: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .meta({ description: 'Probability that it triggers on each occasion, drawn from the seed.' }),
  seed: z
    .union([z.string(), z.int()])
    .optional()
    .meta({ description: 'The same seed triggers on the same occasions. Default: the seed of the sandbox.' }),
  for_ms: z.number().min(0).optional().meta({ description: 'It is disarmed after this time.' }),
  must_trigger: z.boolean().optional().meta({
    description: 'Whether the end of the sandbox reports it as untriggered if it never triggered.',
  }),
};

/** The settings that all faults share. A fault's own settings are added. */
export const anyArmingSchema = z
  .looseObject({ fault: z.enum(faultNames, { error: ({ input }) => noSuchFault(input) }), ...armingShape })
  .meta({ id: 'Arming' });

type ArmingOptions = z.input<z.ZodObject<typeof armingShape>>;
/** `times: Infinity` is `'sticky'`. */
export type Arming<N extends FaultName = FaultName> = ArmingOptions & FaultParams<N>;

const schemas = new Map<FaultName, ReturnType<typeof makeSchema>>();

function makeSchema(name: FaultName) {
  const { params, does } = faultCatalog[name];
  const shape: z.ZodRawShape = params.shape;
  return z.strictObject({ fault: z.literal(name), ...armingShape, ...shape }).meta({ description: does });
}

/** The schema for arming this fault: its name, where and how often, and its own settings. It is built on first use. */
export function armingSchemaOf(name: FaultName) {
  const schema = schemas.get(name) ?? makeSchema(name);
  schemas.set(name, schema);
  return schema;
}

/** Validates the options. @throws {ApiError} */
export function checkedArming(
  name: FaultName,
  given: object,
): Record<string, unknown> & { provider?: string | undefined } {
  const options = withoutInfinity(given);
  const { fault } = parseSetting(anyArmingSchema, { ...options, fault: name });
  const { fault: _name, ...checked } = parseSetting(armingSchemaOf(fault), { ...options, fault });
  const { route = [] } = checked as { route?: string | string[] };
  for (const each of [route].flat()) {
    const message = wrongRoute(faultCatalog[fault], each);
    if (message !== undefined) throw invalidRequest([{ path: 'route', message }]);
  }
  return checked;
}

/** Returns why the fault can never trigger on this route, or undefined if it can. */
function wrongRoute({ layer, on }: Fault, route: string): string | undefined {
  if (layer === 'machine' || layer === 'ssh') return `this fault affects machines and takes no route`;
  if (route === '*') return undefined;
  if (layer === 'platform') {
    if (platformMethods.includes(route)) return undefined;
    return `expected * or a call of the driver: ${on.join(', ')}`;
  }
  return route.includes(' ') ? undefined : 'expected * or a method and a path, such as GET /instances/{id}';
}

const platformMethods: readonly string[] = [
  ...new Set(Object.values(faultCatalog).flatMap((fault) => (fault.layer === 'platform' ? fault.on : []))),
];

function noSuchFault(name: unknown): string {
  const nearest = typeof name === 'string' ? faultsLike(name.slice(0, 100)) : undefined;
  return `expected a fault${nearest ? `, such as ${nearest}` : ''}; see GET /control/faults/catalog or docs/sandbox-faults.md for all faults`;
}

/** Up to three faults with all words of the text in their name, else in their description; or the most similar name. */
function faultsLike(text: string): string | undefined {
  const words = text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const withWords = (textOf: (name: FaultName) => string) =>
    faultNames.filter((name) => words.length > 0 && words.every((word) => textOf(name).includes(word)));
  const described = withWords((name) => `${name} ${faultCatalog[name].does}`.toLowerCase());
  const found = new Set([...withWords((name) => name), ...described]);
  return [...found].slice(0, 3).join(', ') || mostLike(text, faultNames);
}

export interface Occasion {
  provider: string;
  /** The route, such as `GET /instances/{id}`, or the call of the driver. Undefined for machines and SSH. */
  on?: string;
  /** The method and the path, for a fault of one path. */
  at?: string;
  resource: string | undefined;
  request?: Request;
  connection?: object | undefined;
}

export interface ArmedView {
  id: string;
  fault: FaultName;
  options: Record<string, unknown>;
  /** Number of occasions on which it could have triggered. */
  seen: number;
  hits: number;
  isOver: boolean;
}

export interface SavedFault {
  id: string;
  name: FaultName;
  options: Record<string, unknown>;
  seen: number;
  hits: number;
  counts: [step: string, count: number][];
  armedAt: number;
  /** Time of the last occasion. */
  seenAt: number | undefined;
}

interface Ports {
  clock: FaultClock;
  /** A number in [0, 1) for each text. */
  draw(what: string): number;
  /** Called when the fault is disarmed. */
  disarmed(): void;
}

export class ArmedFault {
  readonly id: string;
  readonly name: FaultName;
  readonly fault: Fault;
  readonly options: z.output<z.ZodObject<typeof armingShape>>;
  /** All that it was armed with, its own settings included. */
  readonly params: Record<string, unknown>;
  seen: number;
  hits: number;
  /** Time of the last occasion. */
  seenAt: number | undefined;
  #isDisarmed = false;
  readonly #memory = new Map<string, unknown>();
  /** For a fault of connections: those that it met, with the number of requests since it triggered. */
  readonly #connections = new WeakMap<object, { isAffected: boolean; requests: number }>();
  readonly #counts: Map<string, number>;
  readonly #armedAt: number;
  readonly #ports: Ports;

  constructor({ id, name, options, seen, hits, counts, armedAt, seenAt }: SavedFault, ports: Ports) {
    this.id = id;
    this.name = name;
    this.fault = faultCatalog[name];
    this.options = z.object(armingShape).parse(options);
    this.params = options;
    this.seen = seen;
    this.hits = hits;
    this.#counts = new Map(counts);
    this.#armedAt = armedAt;
    this.seenAt = seenAt;
    this.#ports = ports;
  }

  get isOver(): boolean {
    const isLate = this.#ports.clock.now() >= this.#endsAt;
    // A fault of connections keeps those that it affected.
    return this.#isDisarmed || isLate || (this.isUsedUp && !this.#isOfConnections);
  }

  /** Whether it has triggered as often as it may. */
  get isUsedUp(): boolean {
    return this.#times !== 'sticky' && this.hits >= this.#times;
  }

  /** When it stops triggering on every occasion: infinite until it is disarmed, in the past if each occasion may be spared. */
  get sureUntil(): number {
    const isSure = this.#times === 'sticky' && this.options.probability === 1;
    return isSure && !this.isOver ? this.#endsAt : Number.NEGATIVE_INFINITY;
  }

  get #times(): number | 'sticky' {
    return this.options.times ?? this.fault.times ?? 1;
  }

  get #endsAt(): number {
    return this.#armedAt + (this.options.for_ms ?? Number.POSITIVE_INFINITY);
  }

  get #isOfConnections(): boolean {
    return 'isOfConnections' in this.fault;
  }

  /** The instance or volume that it is restricted to. */
  get resource(): string | undefined {
    return this.options.instance ?? this.options.volume;
  }

  /** Whether it triggers only on some of its occasions, by count or by chance. */
  get isCounted(): boolean {
    return this.options.skip > 0 || this.options.probability < 1;
  }

  /** Whether it had to trigger, and did not. */
  get isUntriggered(): boolean {
    return this.options.must_trigger === true && this.hits === 0;
  }

  disarm(): void {
    this.#isDisarmed = true;
    this.#ports.disarmed();
  }

  /** Whether it may affect calls or machines of the provider, whatever their resource is. */
  fitsProvider(name: string): boolean {
    const { provider } = this.options;
    return !this.isOver && (provider === undefined ? name !== MARKETPLACE : name === provider);
  }

  fits(occasion: Occasion): boolean {
    if (!this.fitsProvider(occasion.provider)) return false;
    if (this.#metBefore(occasion) !== undefined) return true;
    if (this.isUsedUp || !this.#fitsRoute(occasion)) return false;
    return this.resource === undefined || this.resource === occasion.resource || this.#changesList(occasion);
  }

  /** Counts the occasion. Returns undefined if the fault does not trigger. */
  trigger(occasion: Occasion): Trigger<Record<string, unknown>> | undefined {
    const met = this.#metBefore(occasion) ?? { isAffected: this.#decide(occasion), requests: 0 };
    if (occasion.connection !== undefined && this.#isOfConnections)
      this.#connections.set(occasion.connection, met);
    if (!met.isAffected) return undefined;
    met.requests++;
    return {
      params: this.params,
      clock: this.#ports.clock,
      nth: this.hits,
      sureUntil: this.sureUntil,
      nthOnConnection: met.requests,
      resource: this.resource,
      memory: this.#memory,
      draw: this.#drawsOf(occasion),
    };
  }

  /** Counts the occasion, and returns whether the fault triggers. */
  #decide(occasion: Occasion): boolean {
    this.seen++;
    this.seenAt = this.#ports.clock.now();
    if (this.seen <= this.options.skip) return false;
    const step = stepOf(occasion);
    this.#counts.set(step, (this.#counts.get(step) ?? 0) + 1);
    const { probability } = this.options;
    if (probability < 1 && this.#drawsOf(occasion)('triggers') >= probability) return false;
    this.hits++;
    return true;
  }

  #drawsOf(occasion: Occasion): (what: string) => number {
    const step = stepOf(occasion);
    const count = this.#counts.get(step);
    return (what) => this.#ports.draw(`${this.name}/${step}/${count}/${what}`);
  }

  #metBefore({ connection }: Occasion): { isAffected: boolean; requests: number } | undefined {
    return connection && this.#connections.get(connection);
  }

  save(): SavedFault {
    const { id, name, seen, hits, seenAt } = this;
    const counts = [...this.#counts];
    return { id, name, options: this.params, seen, hits, counts, armedAt: this.#armedAt, seenAt };
  }

  toJSON(): ArmedView {
    const { id, name, seen, hits, isOver } = this;
    return { id, fault: name, options: this.params, seen, hits, isOver };
  }

  #fitsRoute({ on, at = on }: Occasion): boolean {
    if (on === undefined || at === undefined) return true;
    const { route = this.fault.on } = this.options;
    return [route].flat().some((pattern) => matches(pattern, on) || matches(pattern, at));
  }

  #changesList({ on, resource }: Occasion): boolean {
    const isList = on?.startsWith('GET ') && resource === undefined;
    return isList === true && this.fault.layer === 'answer' && this.fault.changesLists === true;
  }
}

/** The armed faults of a sandbox, as its layers see them. */
export interface ArmedFaults {
  readonly clock: FaultClock;
  /** In the order in which they trigger. */
  readonly all: readonly ArmedFault[];
  has(layer: Fault['layer']): boolean;
  /** Counts the occasion if the fault fits it, and records it. Returns undefined if the fault does not trigger. */
  trigger(armed: ArmedFault, occasion: Occasion): Trigger<Record<string, unknown>> | undefined;
}

/**
 * Returns the key by which occasions are counted: the same requests or calls at one provider share it.
 */
export function stepOf({ provider, on = '-' }: Occasion): string {
  return `${provider} ${on}`;
}

/** Whether a pattern, such as `GET /v1/instances/{instanceId}` or `* /volumes`, fits a route. */
function matches(pattern: string, on: string): boolean {
  const [method = '', path = ''] = pattern.split(' ');
  if (path === '') return pattern === '*' || pattern === on;
  const wanted = withIds(withoutBase(path));
  return method === '*' ? on.endsWith(` ${wanted}`) : on === `${method} ${wanted}`;
}
