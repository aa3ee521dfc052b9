import { z } from 'zod';
import { toIssues } from '../contract/issue-words.ts';
import type { Phase, Range, VolumePhase } from '../platform-model/rules.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import { DURATION, type Duration, EXPECTED_DURATION, toMilliseconds } from './duration.ts';
import { type AnyPhase, phases } from './phases.ts';

/** How long a transition takes: always the same, or drawn from a range. */
type DurationRange = Duration | readonly [least: Duration, most: Duration];

/** Durations of transitions of machines and volumes, in milliseconds. Each is drawn from its range. */
export type Timing = Record<Phase, Range> & { volume: Record<VolumePhase, Range> };

export interface MarketplaceSettings {
  /** Credit of each account's team. Default 10,000 USD. */
  credit_usd?: number;
}

/** Each option has the same name in the command line, with hyphens. */
export interface SandboxOptions {
  /** Providers from the bundled profiles: `a` or `provider-a`. Default: `['a']`, or none if a catalog is given. */
  providers?: readonly string[];
  /** A catalog file. The provider `custom` sells its offers, and has all capabilities. Default: none. */
  catalog?: string;
  /** The same seed gives the same keys, ids, draws and faults. Default 1. */
  seed?: number | string;
  /**
   * `virtual` (the default): time passes only by `clock.advance()`, and while a request waits for it. `real`: time
   * passes by itself, and can be advanced too.
   */
  clock?: 'virtual' | 'real';
  /** Start of virtual time, in milliseconds since the Unix epoch. Default 2026-01-01T00:00:00Z. */
  start_at?: number;
  /**
   * How long transitions of machines and volumes take: `{ boot: '5s', stop: ['1s', '3s'] }`. `volume` is for each transition
   * of a volume that is not given, such as `volumes.attach`.
   */
  timing?: Partial<Record<AnyPhase | 'volume', DurationRange>>;
  /**
   * Whether machines run real SSH servers on ports of 127.0.0.1, so that proofs are real. Default: their addresses do
   * not answer, and proofs come from the model. Ports and host keys do not depend on the seed.
   */
  ssh?: boolean;
  /** Whether a marketplace runs on top of the providers, at `/api`. Default: no. */
  marketplace?: boolean | MarketplaceSettings;
  /** `false`: no request is answered 429. Default: production's limits, for each address and account. */
  rate_limits?: boolean;
  /**
   * `unlimited` (the default): an offer that is for sale stays for sale, so that no account takes capacity from another.
   * `catalog`: all accounts share the units and the storage of the catalog.
   */
  capacity?: 'unlimited' | 'catalog';
  /**
   * Origin of base URLs. Default: the address at which it listens, or `http://sandbox.test`, which only the sandbox's
   * `fetch` resolves.
   */
  origin?: string;
  /** Key of the control API. Default: drawn at random. */
  control_key?: string;
  /** Default of `must_trigger` of its faults, except for those with a `probability`. Default false. */
  must_trigger?: boolean;
  /** When it aborts, as that of a test that timed out, the sandbox ends, and all that waits for it breaks off. */
  signal?: AbortSignal | undefined;
  /** Default: no log. */
  log?: Log;
}

const LATEST_START = Date.UTC(9000, 0, 1);
const duration = z.union(
  [z.number().min(0), z.string().refine((text) => DURATION.test(text), EXPECTED_DURATION)],
  EXPECTED_DURATION,
);
const range = z
  .union([duration, z.tuple([duration, duration])], `${EXPECTED_DURATION}, or two of them`)
  .transform((given): Range => {
    const [least, most] = Array.isArray(given) ? given : [given, given];
    return [toMilliseconds(least), toMilliseconds(most)];
  })
  .refine(([least, most]) => least <= most, 'expected the smaller of the two first')
  .optional();
const timingSchema = z.strictObject({
  volume: range,
  ...(Object.fromEntries(phases.map((phase) => [phase, range])) as Record<AnyPhase, typeof range>),
});
const marketplaceSettings = z.strictObject({
  credit_usd: z.number().min(0).optional(),
});
const optionsShape = {
  providers: z.array(z.string()).optional(),
  catalog: z.string().optional(),
  seed: z.union([z.number(), z.string()], 'expected a number, or a string').optional(),
  clock: z.enum(['virtual', 'real']).optional(),
  start_at: z.int().min(0).max(LATEST_START).optional(),
  timing: timingSchema.optional(),
  ssh: z.boolean().optional(),
  marketplace: z.union([z.boolean(), marketplaceSettings]).optional(),
  rate_limits: z.boolean().optional(),
  capacity: z.enum(['unlimited', 'catalog']).optional(),
  origin: z
    .string()
    .regex(/^https?:\/\/[^/]+$/, 'expected an origin without a slash at its end, such as http://sandbox.test')
    .optional(),
  control_key: z.string().min(1).optional(),
  must_trigger: z.boolean().optional(),
  signal: z
    .custom<AbortSignal>(
      (signal) => typeof (signal as AbortSignal | null)?.aborted === 'boolean',
      'expected an AbortSignal',
    )
    .optional(),
  log: z.custom<Log>((log) => typeof (log as Log | null)?.error === 'function', 'expected a log').optional(),
} satisfies Record<keyof SandboxOptions, z.ZodType>;
const optionsSchema = z
  .object(optionsShape)
  .refine(({ providers, catalog }) => providers?.length !== 0 || catalog !== undefined, {
    path: ['providers'],
    message: 'expected at least one, or a catalog',
  });

/** Refuses an older Node, with which the database module would end the process without a message. @throws {Fatal} */
export function assertNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 22 || (major === 22 && minor < 14))
    throw new Fatal(`The sandbox needs Node 22.14 or later; this is ${version}.`);
}

/** @throws {Fatal} for an unknown option or an invalid value */
export function assertOptions(options: SandboxOptions): void {
  const { error } = optionsSchema.safeParse(options);
  if (error !== undefined) {
    const found = toIssues({ error, data: options });
    throw new Fatal(
      `createSandbox: ${found.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')}`,
    );
  }
  const names = Object.keys(optionsShape);
  for (const name of Object.keys(options))
    if (!names.includes(name))
      throw new Fatal(
        `createSandbox has no option ${name}: did you mean ${mostLike(name, names) ?? names.join(', ')}?`,
      );
}

const usualTiming: Record<Phase | 'volume', Range> = {
  boot: [3_000, 8_000],
  stop: [1_000, 3_000],
  start: [2_000, 6_000],
  restart: [2_000, 6_000],
  destroy: [1_000, 3_000],
  volume: [200, 1_500],
};

/** The given durations, and the usual ones for the rest. */
export function toTiming(given: SandboxOptions['timing'] = {}): Timing {
  const { volume = usualTiming.volume, ...ranges } = timingSchema.parse(given);
  const ofVolume = (phase: VolumePhase): Range => ranges[`volumes.${phase}`] ?? volume;
  return {
    boot: ranges.boot ?? usualTiming.boot,
    stop: ranges.stop ?? usualTiming.stop,
    start: ranges.start ?? usualTiming.start,
    restart: ranges.restart ?? usualTiming.restart,
    destroy: ranges.destroy ?? usualTiming.destroy,
    volume: {
      create: ofVolume('create'),
      attach: ofVolume('attach'),
      detach: ofVolume('detach'),
      resize: ofVolume('resize'),
      destroy: ofVolume('destroy'),
    },
  };
}

/** The name of the marketplace among the servers, and of its account at the providers. */
export const MARKETPLACE = 'marketplace';

export const START_AT = Date.UTC(2026, 0, 1);

/** `a` is short for `provider-a`. */
export function toProviderName(name: string): string {
  return /^[a-z]$/.test(name) ? `provider-${name}` : name;
}

/** Replaces `times: Infinity`, which JSON does not have. */
export function withoutInfinity<O extends object>(options: O): O {
  return 'times' in options && options.times === Number.POSITIVE_INFINITY
    ? { ...options, times: 'sticky' }
    : options;
}

/** Returns the most similar choice. Undefined if none shares a third of its characters. */
export function mostLike(text: string, choices: readonly string[]): string | undefined {
  const rated = choices
    .map((choice) => ({ choice, distance: editDistance(text, choice) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = rated;
  return best !== undefined && best.distance < (2 * text.length) / 3 ? best.choice : undefined;
}

/** The Levenshtein distance: the number of characters to insert, remove or replace. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
