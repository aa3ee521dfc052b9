import { z } from 'zod';
import { toIssues } from '../contract/issue-words.ts';
import type { Range } from '../platform-model/rules.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import { mostLike } from './most-like.ts';

/** How long machines and volumes take, in milliseconds: each is drawn from its range. */
export interface Timing {
  boot: Range;
  stop: Range;
  start: Range;
  restart: Range;
  destroy: Range;
  volume: Range;
}

/** What the marketplace of a sandbox has beyond its defaults. */
export interface MarketplaceSettings {
  /** What the team of each account has to spend. Default 10,000 USD. */
  creditUsd?: number;
  /** The most that one team may have at the same time; null: any number. */
  teamLimits?: { deployments?: number | null; volumes?: number | null; volumeGb?: number | null };
}

export interface SandboxOptions {
  /** Which of the providers whose profiles come with Berth: `a` or `provider-a`. Default: `['a']`, or none beside a catalog. */
  providers?: readonly string[];
  /** A catalog file of your own: the provider `custom` sells what it has, and can do everything. Default: none. */
  catalog?: string;
  /** The same seed gives the same keys, ids, draws and faults. Default 1. */
  seed?: number | string;
  /**
   * `virtual` (the default): time stands still until `clock.advance()`, except that a request that waits for time has it
   * pass. `real`: time passes by itself, and can be advanced too.
   */
  clock?: 'virtual' | 'real';
  /** When virtual time begins, in milliseconds since the Unix epoch. Default 2026-01-01T00:00:00Z. */
  startAt?: number;
  timing?: Partial<Timing>;
  /**
   * Whether machines have real SSH servers, at ports of 127.0.0.1: proofs are then real too. Default: they have addresses where
   * nobody answers, and proofs come from the model. Ports and host keys are not drawn from the seed.
   */
  ssh?: boolean;
  /** Whether the marketplace runs on top of the providers, at `/api`. Default: it does not. */
  marketplace?: boolean | MarketplaceSettings;
  /** `false`: nobody is answered 429. Default: the limits of production, for each account by itself. */
  rateLimits?: boolean;
  /** A file where all but the journal is kept, and is there again at the next start. Default: it is in memory only. */
  state?: string;
  /** What base URLs begin with. Default `http://sandbox.test`, which only `fetch` of the sandbox knows. */
  origin?: string;
  /** Default: nothing is logged. */
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
    message: 'expected at least one, where there is no catalog',
  });

/** On an older one the database ends the process without a word. @throws {Fatal} */
export function assertNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 22 || (major === 22 && minor < 14))
    throw new Fatal(`The sandbox needs Node 22.14 or later, and this is ${version}.`);
}

/** @throws {Fatal} for an option that there is not, or that has no such value */
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
