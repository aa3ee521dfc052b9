import { z } from 'zod';
import { toIssues } from '../contract/issue-words.ts';
import type { Range } from '../platform-model/rules.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';

/** Durations of transitions of machines and volumes, in milliseconds. Each is drawn from its range. */
export interface Timing {
  boot: Range;
  stop: Range;
  start: Range;
  restart: Range;
  destroy: Range;
  volume: Range;
}

export interface MarketplaceSettings {
  /** Credit of each account's team. Default 10,000 USD. */
  creditUsd?: number;
  /** Maximum that one team may have at the same time. Null for no limit. */
  teamLimits?: { deployments?: number | null; volumes?: number | null; volumeGb?: number | null };
}

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
  startAt?: number;
  timing?: Partial<Timing>;
  /**
   * Whether machines run real SSH servers on ports of 127.0.0.1, so that proofs are real. Default: their addresses do
   * not answer, and proofs come from the model. Ports and host keys do not depend on the seed.
   */
  ssh?: boolean;
  /** Whether a marketplace runs on top of the providers, at `/api`. Default: no. */
  marketplace?: boolean | MarketplaceSettings;
  /** `false`: no request is answered 429. Default: production's limits, separately for each account. */
  rateLimits?: boolean;
  /** A file that keeps everything except the journal for the next start. Default: memory only. */
  state?: string;
  /** Origin of base URLs. Default `http://sandbox.test`, which only the sandbox's `fetch` resolves. */
  origin?: string;
  /** Default: no log. */
  log?: Log;
}

const LATEST_START = Date.UTC(9000, 0, 1);
const range = z
  .tuple([z.number().min(0), z.number().min(0)])
  .refine(([least, most]) => least <= most, 'expected the smaller of the two first')
  .optional();
const limit = z.int().min(0).nullable().optional();
const marketplaceSettings = z.strictObject({
  creditUsd: z.number().min(0).optional(),
  teamLimits: z.strictObject({ deployments: limit, volumes: limit, volumeGb: limit }).optional(),
});
const optionsShape = {
  providers: z.array(z.string()).optional(),
  catalog: z.string().optional(),
  seed: z.union([z.number(), z.string()], 'expected a number, or a string').optional(),
  clock: z.enum(['virtual', 'real']).optional(),
  startAt: z.int().min(0).max(LATEST_START).optional(),
  timing: z
    .strictObject({ boot: range, stop: range, start: range, restart: range, destroy: range, volume: range })
    .optional(),
  ssh: z.boolean().optional(),
  marketplace: z.union([z.boolean(), marketplaceSettings]).optional(),
  rateLimits: z.boolean().optional(),
  state: z.string().min(1).optional(),
  origin: z
    .string()
    .regex(/^https?:\/\/[^/]+$/, 'expected an origin without a slash at its end, such as http://sandbox.test')
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

export const defaultTiming: Timing = {
  boot: [3_000, 8_000],
  stop: [1_000, 3_000],
  start: [2_000, 6_000],
  restart: [2_000, 6_000],
  destroy: [1_000, 3_000],
  volume: [200, 1_500],
};

export const START_AT = Date.UTC(2026, 0, 1);

/** `a` is short for `provider-a`. */
export function toProviderName(name: string): string {
  return /^[a-z]$/.test(name) ? `provider-${name}` : name;
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
export function editDistance(a: string, b: string): number {
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
