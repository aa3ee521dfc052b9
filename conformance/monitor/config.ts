import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { readBaseUrl } from '../doctor/base-url.ts';
import { readApiKey } from '../doctor/credentials.ts';
import { toClause } from '../doctor/diagnosis.ts';
import { systemErrorText } from '../text/wording.ts';
import { DEFAULT_RULES, rule } from './rules.ts';

const name = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 of a-z, 0-9 and -');

const provider = z
  .strictObject({
    name,
    base_url: z.string(),
    /** The name of an environment variable. */
    api_key_env: z.string().min(1).optional(),
    api_key_file: z.string().min(1).optional(),
    budget_usd_per_day: z.number().positive(),
    /** Ids; default: any offer that the budget allows. */
    offers: z.array(z.string()).min(1).optional(),
    regions: z.array(z.string()).min(1).optional(),
    /** PEM certificate of an additional authority to trust. */
    ca_file: z.string().min(1).optional(),
    /** Eight hex digits in the names of its machines, as in those of the marketplace; drawn if not given. */
    installation: z
      .string()
      .regex(/^[0-9a-f]{8}$/, 'must be eight hex digits')
      .optional(),
    allow_private: z.boolean().default(false),
    /** The key differs from that of earlier probes, but belongs to the same account. */
    accepts_other_key: z.boolean().default(false),
  })
  .refine((of) => (of.api_key_env === undefined) !== (of.api_key_file === undefined), {
    error: 'needs either api_key_env or api_key_file',
  });

const config = z.strictObject({
  /** A folder. */
  state: z.string().min(1),
  providers: z.array(provider).min(1),
  reads: z.strictObject({ mean_hours: z.number().min(0.01).default(0.5) }).prefault({}),
  machines: z
    .strictObject({
      /** Default: as often as the budget allows, and at most every `least_hours` on average. */
      mean_hours: z.number().min(0.1).optional(),
      least_hours: z.number().min(0.1).default(2),
      /** How much longer than the shortest use, 20 minutes, a machine is used on average. */
      mean_extra_minutes: z.number().min(0).default(30),
      longest_use_minutes: z.number().min(20).default(240),
      /** The share of machines that are stopped, and started again, before their end. */
      stopped_share: z.number().min(0).max(1).default(0.5),
    })
    .prefault({}),
  poll_interval_ms: z.int().min(100).max(60_000).default(10_000),
  ready_timeout_s: z.int().min(30).max(3600).default(900),
  window_days: z.int().min(1).max(366).default(30),
  /** What a certificate needs; with less its status is `not enough`. */
  enough: z
    .strictObject({
      days: z.number().min(0).default(7),
      reads: z.int().min(1).default(50),
      machines: z.int().min(1).default(5),
    })
    .prefault({}),
  rules: z
    .array(rule)
    .min(1)
    .default([...DEFAULT_RULES]),
  /** `HOST:PORT` of the page, the certificates and the metrics. */
  listen: z
    .string()
    .regex(/^\S+:\d{1,5}$/, 'must be HOST:PORT')
    .optional(),
  /** A folder into which the same files are written. */
  publish_dir: z.string().min(1).optional(),
  /** Receives a POST with each alert. */
  webhook: z.url({ protocol: /^https?$/ }).optional(),
  /** PEM file of an Ed25519 private key. */
  sign_key_file: z.string().min(1).optional(),
});

export type MonitorConfig = z.infer<typeof config>;
export type ProviderConfig = z.infer<typeof provider>;

/** A configuration that cannot be used. The message says where, what is wrong, and what to do. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Reads a configuration file. @throws {ConfigError} */
export function readConfig(path: string): MonitorConfig {
  const read = check(path, config, readYaml(path));
  const names = new Set<string>();
  for (const [index, { name: each }] of read.providers.entries()) {
    if (names.has(each)) throw new ConfigError(`${path}: providers.${index}.name: ${each} is used twice`);
    names.add(each);
  }
  return read;
}

function readYaml(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ConfigError(`${path} cannot be read as YAML (${systemErrorText(error)})`);
  }
}

function check<T>(path: string, schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data as T;
  const [issue] = error.issues;
  const place = issue?.path.join('.') ?? '';
  throw new ConfigError(`${path}: ${place === '' ? 'the file' : place}: ${issue?.message ?? 'is not valid'}`);
}

/** The base URL and the key of a provider. @throws {ConfigError} */
export function credentialsOf(
  { name: of, base_url, api_key_env, api_key_file }: ProviderConfig,
  env: Readonly<Record<string, string | undefined>>,
): { baseUrl: string; apiKey: string } {
  const { baseUrl, diagnoses } = readBaseUrl(base_url);
  if (baseUrl === undefined) throw new ConfigError(`provider ${of}: ${diagnoses.map(toClause).join('; ')}`);
  const variable = api_key_env ?? '';
  const { key, diagnoses: ofKey } = readApiKey({
    file: api_key_file,
    fileOption: 'api_key_file',
    variable,
    env: api_key_env === undefined ? {} : env,
  });
  if (key !== undefined) return { baseUrl, apiKey: key };
  const why =
    ofKey.map(toClause).join('; ') || `${variable} is not set: put the key of a further client in it`;
  throw new ConfigError(`provider ${of}: ${why}`);
}
